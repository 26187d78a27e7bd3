/** One feedback: what it was heard as, and everything that follows from it. @module */

import { ifFound, readFeedback } from "../api.js";
import { collected, readFeed } from "../conversation/ledger.js";
import { publishedKind, verdictOf } from "../conversation/acts.js";
import { lessonsOf } from "../conversation/lessons.js";
import { VERDICTS, lookOf, withSign } from "../conversation/words.js";
import { make } from "../dom.js";
import { day, moment } from "../format.js";
import { emptyState, panel } from "../panel.js";
import { link, personLink } from "../link.js";
import { router } from "../route.js";
import { ON_BEHALF, session } from "../session.js";
import { headingOf } from "../view/view.js";
import { conversationLink, typeOf } from "./panel.js";

/** Messages about one feedback are published together; clocks differ. */
const AROUND_MS = 60_000;

/** @typedef {import("../conversation/ledger.js").Published} Published */

/** @param {import("../route.js").Route} route @param {AbortSignal} signal @returns {Promise<Node[]>} */
export async function feedbackPage(route, signal) {
  const record = await recordOf(route, signal);
  const published = await find(route, record, signal);
  const heading = feedbackHeading(route);
  if (published === null) {
    return [heading, unknown(route.feedback)];
  }
  return [
    heading,
    make("div", { class: "pair" }, heardPanel(published, record), taughtPanel(published)),
    make("div", { class: "pair" }, countedPanel(published, record), undonePanel(published)),
  ];
}

/**
 * The event as it was submitted, if the token may read it.
 *
 * @param {import("../route.js").Route} route
 * @param {AbortSignal} signal
 */
async function recordOf({ feedback, user }, signal) {
  const { caller } = session;
  if (!caller?.scopes.includes(ON_BEHALF) && caller?.sub !== user) {
    return null;
  }
  return ifFound(readFeedback(feedback, signal));
}

/**
 * Its messages in the feed.
 *
 * @param {import("../route.js").Route} route
 * @param {any} record
 * @param {AbortSignal} signal
 * @returns {Promise<Published | null>}
 */
async function find({ project, feedback, user, at }, record, signal) {
  const userId = user || record?.event.userId;
  const published = Date.parse(at || record?.processedAt || "");
  const since = Number.isNaN(published) ? undefined : new Date(published - AROUND_MS).toISOString();
  const query = { projectId: project, userId, since };
  const { messages } = await readFeed(query, (message) => idOf(message) === feedback, signal);
  return collected(messages)[0] ?? null;
}

/** @param {any} message */
function idOf({ feedbackId, sourceEvent }) {
  return feedbackId ?? sourceEvent?.feedbackId;
}

/** @param {import("../route.js").Route} route */
function feedbackHeading({ project, feedback }) {
  return headingOf({
    back: link({ feedback: "", at: "" }, "Live", { id: "to-live" }),
    title: ["Feedback ", make("code", {}, feedback)],
    facts: [make("span", {}, project)],
  });
}

/** @param {string} feedback */
function unknown(feedback) {
  return emptyState(
    "Nothing to show",
    make("p", {}, "The feed has no feedback ", make("code", {}, feedback), " that this token may read."),
    make(
      "p",
      { class: "note" },
      "It may not be processed yet, be a duplicate, be private to its user, be erased, or be older than the feed.",
    ),
  );
}

/** @param {Published} published @param {any} record */
function heardPanel({ event, isWithdrawn }, record) {
  const verdict = verdictOf(event);
  const channel = { explicit: "explicit", implicit: "inferred", correction: "correction" };
  const status = isWithdrawn ? "withdrawn; it counts nowhere" : "counts";
  const facts = [
    ["What", make("b", { class: lookOf(verdict) }, withSign(verdict, publishedKind(event)))],
    ["Verdict", verdict === null ? "none" : `${VERDICTS[verdict]} the answer`],
    ["Channel", channel[/** @type {keyof typeof channel} */ (event.feedbackChannel)] ?? event.feedbackChannel],
    ["User", event.userId ? personLink(event.userId) : null],
    ["Given", moment(event.occurredAt)],
    ["Received", record ? moment(record.receivedAt) : null],
    ["Processed", moment(event.publishedAt)],
    ["Status", status],
    ["Answer", event.conversationId ? place(event) : "no turn: it is about a session"],
    ["Comment", record?.event.data?.comment ? make("q", {}, record.event.data.comment) : null],
    ["Dedupe key", event.dedupeKey ? make("code", {}, event.dedupeKey) : null],
  ];
  return panel({ title: "Heard as" }, list(facts));
}

/** @param {any} event */
function place(event) {
  return make("span", {}, conversationLink(event), event.turnId ? `, turn ${event.turnId}` : "");
}

/** @param {Published} published */
function taughtPanel({ event, signals }) {
  const title = "Taught";
  if (signals.length > 0) {
    return panel({ title, note: "Learning signals, which subscribers received." }, lessonsOf(signals));
  }
  const why = event.privacyFlags?.excludeFromTraining
    ? "Its user excluded it from training, so it gives no learning signal."
    : "It gives no learning signal.";
  return panel({ title }, make("p", {}, why));
}

/** @param {Published} published @param {any} record */
function countedPanel({ event, isWithdrawn }, record) {
  const title = "Counted in";
  if (isWithdrawn) {
    return panel({ title }, make("p", {}, "Nothing any more: it was withdrawn."));
  }
  const date = event.occurredAt.slice(0, 10);
  const period = { from: date, to: date };
  const dimensions = [
    ["artifactType", typeOf(event)],
    ["taskType", event.features?.taskType],
    ...Object.entries(event.labels ?? {}).map(([key, value]) => [`label.${key}`, value]),
  ].filter(([, value]) => value);
  const overview = link({ ...router.to("overview"), ...period }, `Overview of ${day(Date.parse(date))}`);
  const compared = dimensions.map(([by, value]) =>
    make("li", {}, link({ ...router.to("compare"), by }, `${by} = ${value}`), " in the chosen period"),
  );
  const as = record?.counted?.as;
  const turn = as
    ? ` as ${VERDICTS[as] ?? as}`
    : record?.counted?.reason
      ? `: not, because of ${record.counted.reason.replaceAll("_", " ")}`
      : "";
  return panel(
    { title, note: "Days are those of UTC." },
    make(
      "ul",
      { class: "links" },
      make("li", {}, overview),
      ...compared,
      event.conversationId ? make("li", {}, conversationLink(event), `, the satisfaction of its turn${turn}`) : null,
      make("li", {}, training(event)),
    ),
  );
}

/** @param {any} event */
function training({ privacyFlags, conversationId }) {
  if (privacyFlags?.excludeFromTraining) {
    return "no training data: its user excluded it";
  }
  return conversationId ? "training exports and evaluation reads of this day" : "no training data: it is about no turn";
}

/** What would change. @param {Published} published */
function undonePanel({ isWithdrawn }) {
  const withdrawn = isWithdrawn
    ? "It was withdrawn: reports and later exports do not have it. "
    : "Its user, or a back end in their name, can withdraw it: within a minute no report counts it, and no later export has it. ";
  return panel(
    { title: "Taking it back" },
    make(
      "p",
      {},
      withdrawn,
      "Subscribers are told; what they learned, and what preferences learned, stays, and so do files that were exported before.",
    ),
    make(
      "p",
      {},
      "Erasing the user also removes the event itself, its signals, the user’s turns and preferences, and the rows of exports that derive from them.",
    ),
  );
}

/** @param {any[][]} facts pairs, of which those without a value are left out */
function list(facts) {
  const known = facts.filter(([, value]) => value !== null && value !== undefined);
  return make(
    "dl",
    { class: "record" },
    ...known.flatMap(([term, value]) => [make("dt", {}, term), make("dd", {}, value)]),
  );
}
