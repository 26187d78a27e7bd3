/** The feedback beside a turn: what its users did, what was inferred, and what both taught. @module */

import { make } from "../dom.js";
import { moment, percent } from "../format.js";
import { link } from "../link.js";
import { correctionOf } from "./correction.js";
import { lessons } from "./lessons.js";
import { wordsAt } from "./marked.js";
import { CORRECTIONS, MEANINGS, VERDICTS, capital, cueName, lookOf, withSign } from "./words.js";

/** Below this confidence, an inference is no reaction (docs/reference/rules.md#detection). */
const MIN_CONFIDENCE = 0.7;

/** @typedef {import("./reading.js").Turn} Turn */
/** @typedef {import("./acts.js").Act} Act */

/** @param {Turn} turn @param {Turn[]} turns of the conversation @param {() => void} reload shows the view again */
export function feedbackOn(turn, turns, reload) {
  const { inference } = turn;
  // What was inferred from the next message is also a reaction of the machine, if it is certain enough.
  const inferred = turn.acts.find(
    (act) =>
      inference &&
      act.isMachine &&
      !act.isWithdrawn &&
      act.text === (inference.said ?? "") &&
      // What is confirmed keeps the confidence of its reaction.
      (inference.corrected !== null || act.confidence === inference.confidence),
  );
  const items = turn.acts.filter((act) => act !== inferred).map((act) => actItem(act, turn));
  const correction = inference ? correctionOf(turn, inference, reload) : null;
  if (inference && (correction || inference.corrected || inference.status !== "neutral")) {
    items.push(inferenceItem(inference, inferred, turns, correction));
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

/**
 * @param {import("./reading.js").Inference} inference
 * @param {Act | undefined} act
 * @param {Turn[]} turns
 * @param {Node | null} correction
 */
function inferenceItem(inference, act, turns, correction) {
  const { status, confidence, correction: how, said, detectedIn, isOutranked, corrected } = inference;
  const next = turns.find(({ id }) => id === detectedIn);
  const isInferred = corrected === null && status !== "neutral";
  return make(
    "li",
    {},
    corrected
      ? title(status, `Corrected: ${MEANINGS[status]}`, "")
      : title(status, `Inferred: ${MEANINGS[status]}`, isInferred ? percent(confidence) : ""),
    how ? make("p", {}, capital(CORRECTIONS[how])) : null,
    corrected ? before(corrected) : null,
    why(inference, next),
    inference.cues === null && said ? make("q", {}, said) : null,
    isOutranked && status !== "neutral"
      ? make("p", { class: "note" }, "Other feedback outranks it and decides the status of the turn.")
      : null,
    isInferred && confidence < MIN_CONFIDENCE
      ? make(
          "p",
          { class: "note" },
          "Less certain than 70\u202f%: it can be the turn's status, but counts as no reaction.",
        )
      : null,
    next ? make("p", { class: "note" }, moment(act?.ts ?? next.ts)) : null,
    lessons(act?.signals ?? []),
    correction,
  );
}

/** What was inferred before a person corrected it. @param {NonNullable<Turn["inference"]>["corrected"]} corrected */
function before(corrected) {
  return corrected
    ? make(
        "p",
        { class: "note" },
        `The machine had inferred: ${MEANINGS[corrected.was]} (${percent(corrected.confidence)}). Corrected `,
        moment(corrected.at),
        ".",
      )
    : null;
}

/** @param {import("./reading.js").Inference} inference @param {Turn | undefined} next */
function why({ cues, detectedIn, corrected, status }, next) {
  if (!next) {
    return detectedIn ? null : make("p", { class: "note" }, "From a message that was attached to this turn.");
  }
  const isMarked = cues !== null && cues.length > 0 && corrected === null && status !== "neutral";
  const found = (isMarked ? cues : []).flatMap((cue, index) => [
    index > 0 ? "; " : "",
    make("q", {}, wordsAt(next.log.user.text, cue)),
    ` (${cueName(cue.cue)})`,
  ]);
  return make("p", { class: "note" }, "From the message of ", turnLink(next.id), isMarked ? ": " : ".", ...found);
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
