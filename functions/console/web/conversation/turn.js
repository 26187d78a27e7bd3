/** A turn as it was: the message and the answer, with the feedback beside them. @module */

import { make } from "../dom.js";
import { moment, percent } from "../format.js";
import { SCOPE, session } from "../session.js";
import { feedbackOn, turnLink } from "./feedback.js";
import { markedText } from "./marked.js";
import { LOOKS, SIGNS, capital, lookOf, withSign } from "./words.js";

/** What else a turn says about its answer, as far as it was registered. */
const FACTS = ["task_type", "artifact_type", "agent_id", "strategy", "track_id", "language", "trace_id"];

/** @typedef {import("./reading.js").Turn} Turn */

/** The id of a turn's element. @param {string} turn */
export function elementId(turn) {
  return `turn-of-${turn}`;
}

/** @param {Turn} turn @param {Turn[]} turns of the conversation @param {() => void} reload shows the view again */
export function turnItem(turn, turns, reload) {
  const { id, log } = turn;
  const head = make(
    "header",
    {},
    make("h2", {}, id),
    log ? make("b", {}, log.user_id) : null,
    turn.ts ? moment(turn.ts) : null,
    log ? status(log) : null,
  );
  return make(
    "li",
    { id: elementId(id), class: "panel turn", tabindex: -1, "aria-label": `Turn ${id}` },
    head,
    make("div", { class: "exchange" }, ...texts(turn)),
    make("div", { class: "beside" }, feedbackOn(turn, turns, reload)),
    log ? facts(log) : null,
  );
}

/** @param {any} log */
function status({ user_feedback_status: is, feedback_confidence: confidence }) {
  const text = is === "neutral" ? "No status yet" : `${SIGNS[is]} ${capital(is)}`;
  const title = is === "neutral" ? null : `Confidence ${percent(confidence)}`;
  return make("span", { class: `status ${LOOKS[is] ?? ""}`, title }, text);
}

/** @param {Turn} turn */
function texts({ log, read }) {
  if (log === null) {
    const isReader = session.caller?.scopes.includes(SCOPE);
    const why = isReader
      ? "Its texts are no longer kept."
      : `Only its own user, and a token with the scope ${SCOPE}, may read its texts.`;
    return [make("p", { class: "note" }, why)];
  }
  if (!log.user) {
    return [make("p", { class: "note" }, "Its texts are too large for a response.")];
  }
  // What a person corrected does not rest on its words.
  const cues = read.flatMap(({ cues, corrected, status }) => (corrected || status === "neutral" ? [] : (cues ?? [])));
  return [
    bubble("User", "message", log.user.text, cues, read.filter(isKnown).map(reading)),
    log.assistant
      ? bubble("Answer", "answer", log.assistant.text, [], [])
      : make("p", { class: "note" }, "No answer was registered yet."),
  ];
}

/**
 * @param {string} name
 * @param {string} look
 * @param {string} text
 * @param {import("./reading.js").Cue[]} cues
 * @param {Node[]} notes
 */
function bubble(name, look, text, cues, notes) {
  const content = text.trim() === "" ? make("p", { class: "note" }, "Without text.") : markedText(text, cues);
  return make("div", { class: `bubble ${look}` }, make("h3", {}, name), content, ...notes);
}

/** @param {import("./reading.js").Inference} inference */
function isKnown({ status, corrected }) {
  return status !== "neutral" || corrected !== null;
}

/** What a message was read as. @param {import("./reading.js").Inference} inference */
function reading({ status: is, about, cues, corrected }) {
  const basis = corrected ? ", as a person corrected" : cues !== null && cues.length > 0 ? ", by the marked words" : "";
  return make(
    "p",
    { class: "note" },
    make("b", { class: lookOf(is) }, withSign(is, is === "neutral" ? "Says nothing about" : capital(is))),
    " the answer of ",
    turnLink(about),
    `${basis}.`,
  );
}

/** @param {any} log */
function facts(log) {
  const known = FACTS.filter((name) => log[name]).map((name) => [name.replace("_", " "), log[name]]);
  const all = [...known, ...Object.entries(log.labels ?? {})];
  return all.length === 0
    ? null
    : make(
        "dl",
        { class: "facts" },
        ...all.map(([name, value]) => make("div", {}, make("dt", {}, name), make("dd", {}, value))),
      );
}
