/** What the API's values are called: verdicts, corrections, cues. @module */

/** @typedef {"ok" | "not_ok" | "neutral"} Verdict */

/** A sign, so that colour is not the only difference. @type {Record<string, string>} */
export const SIGNS = { ok: "▲", not_ok: "▼", neutral: "●", accepted: "▲", rejected: "▼" };

/** The class of a verdict. @type {Record<string, string>} */
export const LOOKS = { ok: "higher", not_ok: "lower", accepted: "higher", rejected: "lower" };

/** @param {string | null} verdict `null` if there is none @param {string} text */
export function withSign(verdict, text) {
  return verdict === null ? text : `${SIGNS[verdict]} ${text}`;
}

/** The class of a verdict. @param {string | null} verdict */
export function lookOf(verdict) {
  return verdict === null ? null : LOOKS[verdict];
}

/** What a message means for the answer before it. @type {Record<string, string>} */
export const MEANINGS = { rejected: "rejected", accepted: "accepted", neutral: "says nothing about the answer" };

/** @type {Record<string, string>} */
export const VERDICTS = { ok: "for", not_ok: "against", neutral: "neutral" };

/**
 * How a message rejects an answer. A detection and a turn name the first differently.
 *
 * @type {Record<string, string>}
 */
export const CORRECTIONS = {
  explicit: "explicit correction",
  explicit_correction: "explicit correction",
  rephrased: "rephrased question",
  abandonment: "abandonment",
};

/** What a cue is like (docs/reference/rules.md#confidence-of-a-cue). @type {Record<string, string>} */
const CUES = {
  negation: "a negation, as in “No, …”",
  correction: "a correction, as in “I meant …”",
  wrong: "the answer is wrong",
  retry: "a retry, as in “Try again”",
  quality: "a complaint, as in “Not helpful”",
  failure: "a failure, as in “Still broken”",
  unasked: "not asked for",
  abandonment: "giving up, as in “Never mind”",
  confusion: "confusion",
  change: "a change, as in “… instead”",
  contrast: "a contrast, as in “Gaming, not business”",
  symptom: "a symptom, as in “I get an error”",
  wanted: "what the user wants",
  rephrase: "the same question again",
  thanks: "thanks",
  praise: "praise",
  agreement: "agreement",
  chosen: "a choice from the answer",
  enough: "the user has enough",
  follow_up: "a question about the answer",
  drill_down: "a question about a detail",
  comparison: "a comparison",
  addition: "an addition",
  mention: "a detail of the answer",
  next_request: "the next request",
  topic_change: "another subject",
  learned: "weighed most by the learned model",
  asked_before: "the same question as before",
  answer_repeated: "the same answer as before",
  unsure: "doubt",
  decline: "a refusal",
};

/** @param {string} cue */
export function cueName(cue) {
  return CUES[cue] ?? cue.replaceAll("_", " ");
}

/** @param {string} text */
export function capital(text) {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
