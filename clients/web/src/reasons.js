/**
 * The reasons for a thumb down, and how each is stored as a signal and its text.
 *
 * `inaccurate` and `unsafe` are signals. A reason that the page adds has no signal of its own: it is stored in the text of
 * another one, as `value: text`, or as `value` without a text.
 *
 * @module
 */

/**
 * @typedef {import("./client.js").Signal} Signal
 * @typedef {import("./message.js").SignalState} SignalState
 * @typedef {"not_helpful" | "inaccurate" | "unsafe"} ReasonSignal
 * @typedef {{ value: string, label: string, signal?: ReasonSignal }} ReasonOption A reason that a page adds.
 * @typedef {{ value: string, label: string | null, signal: ReasonSignal, prefix: string | null }} Reason
 *   `label` is null if it is one of the labels; `prefix` is null for a reason that is a signal.
 */

/** @type {readonly ReasonSignal[]} */
const SIGNALS_OF_REASONS = Object.freeze(["not_helpful", "inaccurate", "unsafe"]);

/** Maximum length of an added reason's value, in UTF-16 units. */
const MAX_VALUE = 64;

const SEPARATOR = ": ";

/** The reasons that are signals. @type {readonly Reason[]} */
export const SIGNAL_REASONS = Object.freeze([
  { value: "inaccurate", label: null, signal: "inaccurate", prefix: null },
  { value: "unsafe", label: null, signal: "unsafe", prefix: null },
]);

/** The thumb itself, to which a text belongs if no reason is chosen. @type {Readonly<Reason>} */
export const NO_REASON = Object.freeze({
  value: "not_helpful",
  label: null,
  signal: "not_helpful",
  prefix: null,
});

/**
 * The available reasons: those that are signals, then those that the page adds.
 *
 * @param {readonly ReasonOption[]} added
 * @returns {readonly Reason[]}
 * @throws {TypeError} for an invalid or duplicate reason
 */
export function reasonsWith(added) {
  const reasons = [...SIGNAL_REASONS];
  for (const { value, label, signal = "not_helpful" } of added) {
    const isText = typeof value === "string" && value !== "" && value === value.trim();
    if (!isText || value.length > MAX_VALUE || value.includes(":")) {
      throw new TypeError(
        `a reason's value must have 1 to ${MAX_VALUE} characters, no colon, and no surrounding white space: ${value}`,
      );
    }
    if (reasons.some((known) => known.value === value) || value === NO_REASON.value) {
      throw new TypeError(`the reason ${value} exists already`);
    }
    if (typeof label !== "string" || label === "") {
      throw new TypeError(`the reason ${value} has no label`);
    }
    if (!SIGNALS_OF_REASONS.includes(signal)) {
      throw new TypeError(`the signal of the reason ${value} must be one of ${SIGNALS_OF_REASONS.join(", ")}`);
    }
    reasons.push({ value, label, signal, prefix: value });
  }
  return Object.freeze(reasons);
}

/**
 * The text of a signal for a reason and the user's text.
 *
 * @param {Reason} reason
 * @param {string} text
 * @returns {string | null}
 */
export function stored({ prefix }, text) {
  if (prefix === null) {
    return text || null;
  }
  return text ? prefix + SEPARATOR + text : prefix;
}

/**
 * The length that a reason adds to the stored text, in UTF-16 units.
 *
 * @param {Reason} reason
 */
export function overhead({ prefix }) {
  return prefix === null ? 0 : prefix.length + SEPARATOR.length;
}

/**
 * Parses a stored text into the chosen reason and the user's text.
 *
 * @param {readonly Reason[]} reasons
 * @param {Signal} signal
 * @param {SignalState} state
 * @returns {{ reason: Reason | null, text: string }}
 *   `reason` is null if no reason of that signal is chosen.
 */
export function parsed(reasons, signal, { active, reason: text }) {
  if (!active) {
    return { reason: null, text: "" };
  }
  const ofSignal = reasons.filter((reason) => reason.signal === signal);
  for (const reason of ofSignal) {
    if (reason.prefix !== null && text === reason.prefix) {
      return { reason, text: "" };
    }
    if (reason.prefix !== null && text?.startsWith(reason.prefix + SEPARATOR)) {
      return { reason, text: text.slice(overhead(reason)) };
    }
  }
  return { reason: ofSignal.find(({ prefix }) => prefix === null) ?? null, text: text ?? "" };
}
