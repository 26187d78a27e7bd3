/** The table of what happens now, which fills itself until it is paused. @module */

import { publishedKind, verdictOf } from "../conversation/acts.js";
import { lookOf, withSign } from "../conversation/words.js";
import { signed } from "../conversation/lessons.js";
import { button, make, swap } from "../dom.js";
import { NONE, clock, counted } from "../format.js";
import { panel } from "../panel.js";
import { link, personLink } from "../link.js";
import { router } from "../route.js";
import { saveButton, tableElement } from "../table.js";
import { passed } from "../wait.js";

const EVERY_MS = 2_000;
const AFTER_ERROR_MS = 10_000;
/** Rows at once. */
const ROWS = 200;

/** @typedef {import("./stream.js").Published} Published */

/**
 * @param {import("./stream.js").Stream} stream that was read once
 * @param {string} file
 * @param {AbortSignal} signal at whose abort it ends
 */
export function livePanel(stream, file, signal) {
  let isPaused = false;
  const place = make("div", { class: "content" });
  const status = make("p", { class: "note", role: "status" }, "Following");
  const toggle = button("Pause", () => {
    isPaused = !isPaused;
    toggle.textContent = isPaused ? "Continue" : "Pause";
    status.textContent = isPaused ? "Paused" : "Following";
  });
  const show = () => {
    const rows = stream.feedback.slice(0, ROWS);
    const table = { caption: "Feedback as it happens", file, columns: COLUMNS, rows };
    const content = rows.length > 0 ? tableElement(table) : make("p", { class: "note" }, NOTHING);
    const controls = [status, toggle, saveButton(table)];
    swap(place, panel({ title: "Feedback as it happens", note: NOTE, controls }, content));
  };
  const follow = async () => {
    let wait = EVERY_MS;
    while (await passed(wait, signal)) {
      if (isPaused || document.hidden) {
        continue;
      }
      try {
        const added = await stream.read(signal);
        wait = EVERY_MS;
        if (added.length > 0) {
          show();
        }
        const news = added.filter(({ eventType }) => eventType === "feedback.processed").length;
        status.textContent = isPaused ? "Paused" : news > 0 ? `${counted(news, "event")} new` : "Following";
      } catch (error) {
        if (!signal.aborted) {
          wait = AFTER_ERROR_MS;
          status.textContent = `${error instanceof Error ? error.message : error} Trying again.`;
        }
      }
    }
  };
  show();
  follow();
  return place;
}

const NOTE = "Processed events of the last 15 minutes and since, the latest first. A withdrawn one is struck through.";
const NOTHING = "Nothing yet. Feedback appears here a moment after it is given.";

/** @type {import("../table.js").Column<Published>[]} */
const COLUMNS = [
  { title: "Time", value: ({ event }) => event.publishedAt, show: ({ event }) => clock(event.publishedAt) },
  { title: "Feedback", value: ({ event }) => publishedKind(event), show: kind },
  {
    title: "User",
    value: ({ event }) => event.userId,
    show: ({ event }) => (event.userId ? personLink(event.userId) : NONE),
  },
  { title: "About", value: about, show: (row) => about(row) || NONE },
  { title: "Labels", value: labels, show: (row) => labels(row) || NONE },
  {
    title: "Conversation",
    value: ({ event }) => event.conversationId,
    show: ({ event }) => (event.conversationId ? conversationLink(event) : NONE),
  },
  { title: "Reward", look: "number", value: reward, show: (row) => rewardText(row) },
  { title: "Withdrawn", value: ({ isWithdrawn }) => (isWithdrawn ? "yes" : "no"), isFileOnly: true },
  { title: "Feedback id", value: ({ event }) => event.feedbackId, isFileOnly: true },
];

/** @param {Published} row */
function kind({ event, isWithdrawn }) {
  const verdict = verdictOf(event);
  const inferred = event.feedbackChannel === "implicit" ? ", inferred" : "";
  const follow = link(
    { feedback: event.feedbackId, user: event.userId ?? "", at: event.publishedAt },
    withSign(verdict, publishedKind(event) + inferred),
    { id: `follow-${event.feedbackId}`, class: lookOf(verdict) },
  );
  return isWithdrawn ? make("s", {}, follow) : follow;
}

/** @param {any} event */
export function conversationLink({ conversationId: conversation, turnId, projectId }) {
  const there = router.to("conversations");
  return link({ ...there, project: projectId ?? there.project, conversation, turn: turnId ?? "" }, conversation);
}

/** The artifact type, unless nobody gave one. @param {any} event @returns {string | undefined} */
export function typeOf({ artifactType }) {
  return artifactType === "unknown" ? undefined : artifactType;
}

/** @param {Published} row */
function about({ event }) {
  return [typeOf(event), event.features?.taskType].filter(Boolean).join(", ");
}

/** @param {Published} row */
function labels({ event }) {
  return Object.entries(event.labels ?? {})
    .map(([key, value]) => `${key}=${value}`)
    .join(", ");
}

/** @param {Published} row */
function reward({ signals }) {
  return signals.find((signal) => signal.reward)?.reward.value;
}

/** @param {Published} row */
function rewardText(row) {
  const value = reward(row);
  return value === undefined ? NONE : signed(value);
}
