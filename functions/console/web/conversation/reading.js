/** Reads one conversation: its turns, the feedback on them, and what was published about it. @module */

import { ApiError, readTurn, turnsOf, turnsWithFeedback } from "../api.js";
import { actsOn } from "./acts.js";
import { readLedger } from "./ledger.js";

const PAGE = 500;
/** All feedback that is kept. */
const DAYS = 3650;
const MAX_TURNS = 200;
/** Of a longer conversation, the list of turns is cut. */
const MAX_LISTED = 5_000;

/**
 * What a turn's next message says about it. `cues` are those that the detection rests on, and `null` if they are not
 * known: the message is no turn, or is gone. `corrected` is what was inferred before a person corrected it.
 *
 * @typedef {{ status: "rejected" | "accepted" | "neutral", confidence: number, correction: string | null,
 *   said: string | null, about: string, detectedAt: string, detectedIn: string | null, isOutranked: boolean, cues: Cue[] | null,
 *   corrected: { was: string, confidence: number, at: string } | null }} Inference
 */
/** @typedef {{ cue: string, start: number, end: number }} Cue Positions are in characters. */

/**
 * `log` is `null` if the caller may not read the turn, or it is gone. `read` are the inferences that this turn's message
 * led to.
 *
 * @typedef {{ id: string, ts: string, log: any, acts: import("./acts.js").Act[], inference: Inference | null,
 *   read: Inference[] }} Turn
 */

/**
 * @param {{ project: string, conversation: string, turn: string }} of a long conversation is read around `turn`
 * @param {AbortSignal} signal
 */
export async function readConversation({ project, conversation, turn }, signal) {
  const [reports, listed] = await Promise.all([
    readReports(project, conversation, signal),
    readTurns(project, conversation, signal),
  ]);
  // Feedback on turns that are gone, or that the caller may not read.
  const others = [...reports.keys()].filter((id) => !listed.some((each) => each.turn_id === id));
  listed.sort((a, b) => Date.parse(a.ts) - Date.parse(b.ts));
  const place = listed.findIndex((each) => each.turn_id === turn);
  const first = place < MAX_TURNS ? 0 : Math.min(place - MAX_TURNS / 2, listed.length - MAX_TURNS);
  const wanted = listed.slice(first, first + MAX_TURNS);
  const wantedIds = [...wanted.map((each) => each.turn_id), ...others.slice(0, MAX_TURNS)];
  const ids = [...new Set(turn ? [...wantedIds, turn] : wantedIds)];
  const read = await Promise.all(ids.map((id) => orNull(readTurn(project, conversation, id, signal))));
  const logs = new Map(ids.map((id, index) => [id, read[index]]));

  const readable = [...logs.values()].filter((log) => log !== null);
  const ledger = await readLedger(project, conversation, readable, reports, signal);
  const found = readable
    .map((log) => inferenceOf(log, logs.get(log.user_feedback?.detected_in_turn)))
    .filter((inference) => inference !== null);
  const turns = [...logs]
    .map(([id, log]) => {
      const reactions = reports.get(id) ?? [];
      return {
        id,
        ts: log?.ts ?? reactions.at(-1)?.reaction.ts ?? "",
        log,
        acts: actsOn(id, reactions, ledger.events),
        inference: found.find(({ about }) => about === id) ?? null,
        read: found.filter(({ detectedIn }) => detectedIn === id),
      };
    })
    // Nobody has a turn of this name.
    .filter(({ log, acts }) => log !== null || acts.length > 0)
    .sort((a, b) => Date.parse(a.ts) - Date.parse(b.ts) || a.id.localeCompare(b.id));
  return { turns, isCut: listed.length > MAX_TURNS, isLedgerCut: ledger.isCut };
}

/**
 * The reactions of each turn that has any, the latest first.
 *
 * @param {string} project
 * @param {string} conversation
 * @param {AbortSignal} signal
 */
async function readReports(project, conversation, signal) {
  /** @type {Map<string, any[]>} */
  const reports = new Map();
  let cursor;
  do {
    const page = await turnsWithFeedback(project, conversation, { days: DAYS, limit: PAGE, cursor }, signal);
    for (const { turn_id: id, reactions } of page.turns) {
      reports.set(id, [...(reports.get(id) ?? []), ...reactions]);
    }
    cursor = page.next_cursor;
  } while (cursor && reports.size < MAX_TURNS);
  return reports;
}

/** @param {string} project @param {string} conversation @param {AbortSignal} signal */
async function readTurns(project, conversation, signal) {
  const turns = [];
  let cursor;
  do {
    const page = await turnsOf(project, conversation, { limit: PAGE, cursor }, signal);
    turns.push(...page.turns);
    cursor = page.next_cursor;
  } while (cursor && turns.length < MAX_LISTED);
  return turns;
}

/** @param {any} log @param {any} next the turn in which it was detected @returns {Inference | null} */
function inferenceOf(log, next) {
  const found = log.user_feedback;
  if (!found) {
    return null;
  }
  const heard = next?.user && next.detection?.previous_turn_id === log.turn_id ? next.detection.evidence : null;
  return {
    status: found.status,
    confidence: found.confidence,
    correction: found.correction_type,
    said: found.user_said,
    about: log.turn_id,
    detectedIn: found.detected_in_turn,
    isOutranked: log.user_feedback_status !== found.status || log.feedback_confidence !== found.confidence,
    cues: heard,
    detectedAt: found.detected_at,
    corrected: found.corrected ?? null,
  };
}

/** `null` for what the caller may not read, or what is gone. @template T @param {Promise<T>} reading */
export async function orNull(reading) {
  try {
    return await reading;
  } catch (error) {
    if (error instanceof ApiError && [400, 403, 404, 413].includes(error.status)) {
      return null;
    }
    throw error;
  }
}
