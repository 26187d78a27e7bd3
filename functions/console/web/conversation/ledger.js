/** What was published about a conversation: ratings, corrections, withdrawals, and what each act taught. @module */

import { feed } from "../api.js";
import { SCOPE, session } from "../session.js";

const PAGE = 500;
const MAX_PAGES = 4;
/** Of more users of a conversation, the names of ratings and what was learned are left out. */
const MAX_USERS = 8;
/** Longest that the feed has an event. */
const KEPT_MS = 90 * 86_400_000;
/** How far a turn's time may be in the future. */
const AHEAD_MS = 5 * 60_000;

/** Events that this page took back, which the feed tells later. @type {Set<string>} */
export const takenBack = new Set();

/**
 * Published messages, as the feed lists them.
 *
 * @typedef {{ event: any, signals: any[], isWithdrawn: boolean }} Published
 */

/**
 * @param {string} project
 * @param {string} conversation
 * @param {any[]} logs turns of the conversation
 * @param {Map<string, any[]>} reports
 * @param {AbortSignal} signal
 */
export async function readLedger(project, conversation, logs, reports, signal) {
  const reacting = [...reports.values()].flat().map((artifact) => artifact.user_id);
  const known = [...new Set([...logs.map((log) => log.user_id), ...reacting])].filter((user) => user !== null);
  const { caller } = session;
  const users = caller?.scopes.includes(SCOPE) ? known : known.filter((user) => user === caller?.sub);
  // Feedback is published after its turn.
  const first = Math.min(...logs.map(({ ts }) => Date.parse(ts))) - AHEAD_MS;
  const since = new Date(Math.max(Number.isFinite(first) ? first : 0, Date.now() - KEPT_MS)).toISOString();
  const query = { projectId: project, since };
  const isWanted = (/** @type {any} */ message) => message.conversationId === conversation;
  const read = await Promise.all(
    users.slice(0, MAX_USERS).map((userId) => readFeed({ ...query, userId }, isWanted, signal)),
  );
  return {
    events: collected(read.flatMap(({ messages }) => messages)),
    isCut: users.length > MAX_USERS || read.some(({ isCut }) => isCut),
  };
}

/**
 * The messages of a query that are wanted, and whether there are more than were read.
 *
 * @param {import("../api.js").Query} query
 * @param {(message: any) => boolean} isWanted
 * @param {AbortSignal} signal
 */
export async function readFeed(query, isWanted, signal) {
  const messages = [];
  let cursor;
  for (let page = 0; page < MAX_PAGES && cursor !== null; page += 1) {
    const { events, next_cursor: next } = await feed({ ...query, limit: PAGE, cursor }, signal);
    messages.push(...events.filter(isWanted));
    cursor = next;
  }
  return { messages, isCut: cursor !== null };
}

/** @param {any[]} messages @returns {Published[]} */
export function collected(messages) {
  const withdrawn = new Set(
    messages.filter(({ eventType }) => eventType === "feedback.retracted").map(({ feedbackId }) => feedbackId),
  );
  const signals = Map.groupBy(messages, ({ sourceEvent }) => sourceEvent?.feedbackId);
  return messages
    .filter(({ eventType }) => eventType === "feedback.processed")
    .map((event) => ({
      event,
      signals: signals.get(event.feedbackId) ?? [],
      isWithdrawn: withdrawn.has(event.feedbackId) || takenBack.has(event.feedbackId),
    }));
}
