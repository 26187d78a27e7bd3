/**
 * Why an answer was not helpful: the reasons to choose from, and how each is stored as a signal and its text.
 *
 * `inaccurate` and `unsafe` are signals. A reason that the page adds has no signal of its own: it is stored
 * in front of the text of another one, as `value: text`, or as `value` when there is no text.
 *
 * @module
 */

/**
 * @typedef {import("./client.js").Signal} Signal
 * @typedef {import("./message.js").SignalState} SignalState
 * @typedef {"not_helpful" | "inaccurate" | "unsafe"} ReasonSignal
 * @typedef {{ value: string, label: string, signal?: ReasonSignal }} ReasonOption What a page adds.
 * @typedef {{ value: string, label: string | null, signal: ReasonSignal, prefix: string | null }} Reason
 *   `label` is null where the labels have it; `prefix` is null for a reason that is a signal.
 */

/** @type {readonly ReasonSignal[]} */
const SIGNALS_OF_REASONS = Object.freeze(["not_helpful", "inaccurate", "unsafe"]);

/** Longest value of an added reason, in UTF-16 units. */
const MAX_VALUE = 64;

const SEPARATOR = ": ";

/** The reasons that are signals. @type {readonly Reason[]} */
export const SIGNAL_REASONS = Object.freeze([
  { value: "inaccurate", label: null, signal: "inaccurate", prefix: null },
  { value: "unsafe", label: null, signal: "unsafe", prefix: null },
]);

/** The thumb itself: what a text belongs to when no reason is chosen. @type {Readonly<Reason>} */
export const NO_REASON = Object.freeze({
  value: "not_helpful",
  label: null,
  signal: "not_helpful",
  prefix: null,
});

/**
 * The reasons to choose from: those that are signals, then the page's own.
 *
 * @param {readonly ReasonOption[]} added
 * @returns {readonly Reason[]}
 * @throws {TypeError} for an added reason that could not be told apart or stored
 */
export function reasonsWith(added) {
  const reasons = [...SIGNAL_REASONS];
  for (const { value, label, signal = "not_helpful" } of added) {
    const isText = typeof value === "string" && value !== "" && value === value.trim();
    if (!isText || value.length > MAX_VALUE || value.includes(":")) {
      throw new TypeError(
        `a reason's value has 1 to ${MAX_VALUE} characters, no colon, and no white space around it: ${value}`,
      );
    }
    if (reasons.some((known) => known.value === value) || value === NO_REASON.value) {
      throw new TypeError(`the reason ${value} exists already`);
    }
    if (typeof label !== "string" || label === "") {
      throw new TypeError(`the reason ${value} has no label`);
    }
    if (!SIGNALS_OF_REASONS.includes(signal)) {
      throw new TypeError(`the signal of the reason ${value} is none of ${SIGNALS_OF_REASONS.join(", ")}`);
    }
    reasons.push({ value, label, signal, prefix: value });
  }
  return Object.freeze(reasons);
}

/**
 * What is stored as a signal's text.
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
 * How much of the longest text a reason takes for itself, in UTF-16 units.
 *
 * @param {Reason} reason
 */
export function overhead({ prefix }) {
  return prefix === null ? 0 : prefix.length + SEPARATOR.length;
}

/**
 * What a stored text means: the reason that was chosen, and what the user wrote.
 *
 * @param {readonly Reason[]} reasons
 * @param {Signal} signal
 * @param {SignalState} state
 * @returns {{ reason: Reason | null, text: string }}
 *   `reason` is null where none of that signal is chosen.
 */
export function understood(reasons, signal, { active, reason: text }) {
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
