/** The feedback beside a turn: what its users did, what was inferred, and what both taught. @module */

import { make } from "../dom.js";
import { moment, percent } from "../format.js";
import { link } from "../link.js";
import { lessons } from "./lessons.js";
import { wordsAt } from "./marked.js";
import { CORRECTIONS, VERDICTS, capital, cueName, lookOf, withSign } from "./words.js";

/** Below this confidence, an inference is no reaction (docs/reference/rules.md#detection). */
const MIN_CONFIDENCE = 0.7;

/** @typedef {import("./reading.js").Turn} Turn */
/** @typedef {import("./acts.js").Act} Act */

/** @param {Turn} turn @param {Turn[]} turns of the conversation */
export function feedbackOn(turn, turns) {
  const { inference } = turn;
  // What was inferred from the next message is also a reaction of the machine, if it is certain enough.
  const inferred = turn.acts.find(
    (act) =>
      inference && act.isMachine && act.text === (inference.said ?? "") && act.confidence === inference.confidence,
  );
  const items = turn.acts.filter((act) => act !== inferred).map((act) => actItem(act, turn));
  if (inference) {
    items.push(inferenceItem(inference, inferred, turns));
  }
  return items.length > 0
    ? make("ul", { class: "acts", "aria-label": `Feedback on ${turn.id}` }, ...items)
    : make("p", { class: "note" }, "No feedback on this turn.");
}

/** @param {Act} act @param {Turn} turn */
function actItem(act, turn) {
  const verdict = act.verdict === null ? "" : `: ${VERDICTS[act.verdict]}`;
  const confidence = act.isMachine && !act.isWithdrawn && act.confidence < 1 ? percent(act.confidence) : "";
  return make(
    "li",
    { class: act.isWithdrawn ? "withdrawn" : null },
    title(act.verdict, act.kind + verdict, confidence),
    act.isWithdrawn ? make("p", { class: "note" }, "Replaced or withdrawn; it no longer counts.") : null,
    act.text ? make("q", {}, act.text) : null,
    hidden(act),
    make("p", { class: "note" }, ...who(act, turn), moment(act.ts)),
    lessons(act.signals),
  );
}

/** What only the feedback's own user may see. @param {Act} act */
function hidden({ kind, isPrivate, text }) {
  if (kind === "Correction") {
    return make("p", { class: "note" }, "Only its user sees the corrected text.");
  }
  if (!isPrivate) {
    return null;
  }
  const what = kind === "Private feedback" ? "who gave it, how, and why" : "the comment, if there is one";
  return text ? null : make("p", { class: "note" }, `Only its user sees ${what}.`);
}

/** @param {Act} act @param {Turn} turn */
function who({ user, isMachine }, { log }) {
  if (user === null) {
    return [];
  }
  const isOther = log !== null && log.user_id !== user;
  return [
    isMachine ? "from what " : "",
    make("b", {}, user),
    isMachine ? " said" : "",
    isOther ? " (another user)" : "",
    " · ",
  ];
}

/** @param {import("./reading.js").Inference} inference @param {Act | undefined} act @param {Turn[]} turns */
function inferenceItem(inference, act, turns) {
  const { status, confidence, correction, said, detectedIn, isOutranked } = inference;
  const next = turns.find(({ id }) => id === detectedIn);
  const how = correction ? CORRECTIONS[correction] : status === "accepted" ? "the conversation continues from it" : "";
  return make(
    "li",
    {},
    title(status, `Inferred: ${status}`, percent(confidence)),
    how ? make("p", {}, capital(how)) : null,
    why(inference, next),
    inference.cues === null && said ? make("q", {}, said) : null,
    isOutranked ? make("p", { class: "note" }, "Other feedback outranks it and decides the status of the turn.") : null,
    confidence < MIN_CONFIDENCE
      ? make(
          "p",
          { class: "note" },
          "Less certain than 70\u202f%: it can be the turn's status, but counts as no reaction.",
        )
      : null,
    next ? make("p", { class: "note" }, moment(act?.ts ?? next.ts)) : null,
    lessons(act?.signals ?? []),
  );
}

/** @param {import("./reading.js").Inference} inference @param {Turn | undefined} next */
function why({ confidence, cues, again, detectedIn }, next) {
  if (!next) {
    return detectedIn ? null : make("p", { class: "note" }, "From a message that was attached to this turn.");
  }
  const link = turnLink(next.id);
  if (!cues) {
    return make(
      "p",
      { class: "note" },
      "From the message of ",
      link,
      ". The words that led to it are not known: on these two turns alone, the detector decides differently.",
    );
  }
  const found = cues.flatMap((cue, index) => [
    index > 0 ? "; " : "",
    make("q", {}, wordsAt(next.log.user.text, cue)),
    ` (${cueName(cue.cue)})`,
  ]);
  const isOther = again !== null && Math.abs(again - confidence) > 0.005;
  return make(
    "p",
    { class: "note" },
    "From the message of ",
    link,
    cues.length > 0 ? ": " : ".",
    ...found,
    isOther ? `. On these two turns alone, the detector is ${percent(again)} certain.` : "",
  );
}

/** A link to a turn of the conversation. @param {string} turn */
export function turnLink(turn) {
  return link({ turn }, turn);
}

/** @param {string | null} verdict @param {string} text @param {string} confidence */
function title(verdict, text, confidence) {
  return make(
    "p",
    { class: "act" },
    make("b", { class: lookOf(verdict) }, withSign(verdict, text)),
    confidence ? make("span", { class: "note" }, confidence, make("span", { class: "unseen" }, " confidence")) : null,
  );
}
