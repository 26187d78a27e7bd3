/** The list of conversations: one line for each, the filter, and what the order covers. @module */

import { button, make, segments, swap } from "../dom.js";
import { NONE, count, counted, moment, percent } from "../format.js";
import { failure, panel } from "../panel.js";
import { link } from "../link.js";
import { router } from "../route.js";
import { saveButton } from "../table.js";
import { CORRECTIONS, MEANINGS, capital } from "./words.js";

/** Lines that are shown at once. */
const STEP = 50;

/** @typedef {import("./list.js").ConversationList} ConversationList */
/** @typedef {import("./list.js").Row} Row */

/** The id of a conversation's link, where the focus returns to. @param {string} conversation */
export function linkId(conversation) {
  return `open-${conversation}`;
}

/**
 * @param {ConversationList} list
 * @param {string} until a conversation that is shown in any case; "" for none
 * @param {AbortSignal} signal of what loads more
 */
export function listPanel(list, until, signal) {
  const place = make("div", { class: "content" });
  const status = make("p", { class: "unseen", role: "status" });
  let shown = Math.max(STEP, list.sorted.findIndex(({ id }) => id === until) + 1);
  const show = () => {
    const rows = list.sorted;
    const lines = make(
      "ol",
      { class: "conversations" },
      ...rows.slice(0, shown).map((row) => line(row, list.quoteOf(row))),
    );
    const reveal = button(`Show ${count(Math.min(STEP, rows.length - shown))} more`, () => showMore(rows.length), {
      id: "show-more",
    });
    const footer =
      rows.length > shown
        ? make("div", { class: "row" }, reveal, quiet(`${count(shown)} of ${count(rows.length)}`))
        : null;
    swap(place, panel(heading(list), coverage(), rows.length > 0 ? lines : nothing(list), footer), status);
  };
  const showMore = (/** @type {number} */ all) => {
    const first = shown;
    shown = Math.min(all, shown + STEP);
    show();
    // The button has moved, or is gone.
    /** @type {HTMLElement | undefined} */ (place.querySelectorAll(".conversations a")[first])?.focus();
  };
  const coverage = () => {
    if (!list.hasMore) {
      return null;
    }
    const more = button("Load more", () => load(more), { id: "load-more" });
    const text = `The order covers the ${coveredText(list)}. There are more.`;
    return make("div", { class: "hint" }, make("p", {}, text), more);
  };
  const load = async (/** @type {HTMLButtonElement} */ more) => {
    more.disabled = true;
    more.textContent = "Loading…";
    try {
      await list.load(signal);
    } catch (error) {
      if (!signal.aborted) {
        more.parentElement?.replaceWith(failure(error, () => show()));
      }
      return;
    }
    show();
    document.getElementById("load-more")?.focus();
    status.textContent = `${counted(list.size, "conversation")} loaded.`;
  };
  show();
  return place;
}

/** @param {ConversationList} list */
function coveredText({ size, status, sorted }) {
  if (status === "") {
    return `${counted(size, "conversation")} with the latest feedback`;
  }
  const turns = sorted.reduce((sum, row) => sum + row.turns.length, 0);
  return `${count(turns)} latest ${status} turns, in ${counted(size, "conversation")}`;
}

/** @param {ConversationList} list */
function heading(list) {
  const { status, project, period } = list;
  const filter = segments(
    { id: "status", label: "Status of turns" },
    [
      ["", "All"],
      ["rejected", "Rejected"],
      ["accepted", "Accepted"],
      ["corrected", "Corrected"],
    ],
    status,
    (chosen) => router.go({ status: chosen }),
  );
  const file = [project, period.from, period.to, "conversations", status].filter((each) => each !== "").join("-");
  const table = { caption: "Conversations", file, columns: columnsOf(list), rows: list.sorted };
  const note = {
    "": "The lowest satisfaction first, each user counted once for a turn.",
    rejected: "The most rejected turns first. A turn is rejected by its user's feedback, or by what they said next.",
    accepted: "The latest first. A turn is accepted by its user's feedback, or by what they said next.",
    corrected: "The latest first. A person said that the next message was heard wrong, and what it means.",
  }[status];
  return {
    title: list.hasMore ? "Conversations" : counted(list.size, "conversation"),
    note,
    controls: [filter, saveButton(table)],
  };
}

/** @param {ConversationList} list @returns {import("../table.js").Column<Row>[]} */
function columnsOf(list) {
  const { status } = list;
  /** @type {import("../table.js").Column<Row>} */
  const words = { title: "Words", value: (row) => list.quoteOf(row) };
  /** @type {import("../table.js").Column<Row>[]} */
  const first = [{ title: "Conversation", value: ({ id }) => id }];
  return status === ""
    ? [
        ...first,
        { title: "Satisfaction", value: ({ rate }) => rate },
        { title: "For", value: ({ counts }) => counts?.ok },
        { title: "Against", value: ({ counts }) => counts?.not_ok },
        { title: "Neutral", value: ({ counts }) => counts?.neutral },
        { title: "Inferred", value: ({ counts }) => counts?.machine },
        { title: "Last feedback", value: ({ at }) => at },
        words,
      ]
    : [
        ...first,
        { title: `Turns ${status}`, value: ({ turns }) => turns.length },
        { title: "By", value: (row) => ways(row) },
        { title: "Task types", value: (row) => tasks(row) },
        { title: "Latest turn", value: ({ at }) => at },
        ...(status === "accepted" ? [] : [words]),
      ];
}

/** @param {Row} row @param {string} quote */
function line(row, quote) {
  const { id, at, counts, rate, turns } = row;
  const step = { conversation: id, turn: turns.at(-1)?.turn_id ?? "" };
  const open = link(step, id, { id: linkId(id) });
  const about = counts
    ? countsText(counts)
    : [capital(ways(row)), tasks(row)].filter((each) => each !== "").join(" · ");
  return make(
    "li",
    {},
    counts
      ? make("p", { class: `score ${rate === null || rate >= 0.5 ? "" : "lower"}` }, percent(rate))
      : make(
          "p",
          { class: "score" },
          count(turns.length),
          make("span", { class: "unit" }, turns.length === 1 ? " turn" : " turns"),
        ),
    make("div", {}, open, quote ? make("q", {}, quote) : null, make("p", { class: "note" }, about || NONE)),
    make("p", { class: "note" }, moment(at)),
  );
}

/** @param {Counts} counts @typedef {import("./list.js").Counts} Counts */
function countsText({ ok, not_ok: against, neutral, machine }) {
  const verdicts = [
    against > 0 ? `${count(against)} against` : "",
    ok > 0 ? `${count(ok)} for` : "",
    neutral > 0 ? `${count(neutral)} neutral` : "",
  ].filter((each) => each !== "");
  return verdicts.join(", ") + (machine > 0 ? `; ${count(machine)} of them inferred` : "");
}

/** How the status of its turns was decided. @param {Row} row */
function ways({ turns }) {
  const found = turns.map((turn) => {
    if (turn.was) {
      const [was, is] = [MEANINGS[turn.was], MEANINGS[turn.feedback_type]];
      return was === is ? `${was}, confirmed` : `${was} → ${is}`;
    }
    if (turn.corrected) {
      return "a correction";
    }
    const isInferred = turn.correction_type !== null || turn.feedback_confidence < 1;
    return isInferred ? (CORRECTIONS[turn.correction_type] ?? "what the user said next") : "the user's feedback";
  });
  return [...new Set(found)].join(", ");
}

/** @param {Row} row */
function tasks({ turns }) {
  return [...new Set(turns.map((turn) => turn.task_type ?? null).filter((task) => task !== null))].join(", ");
}

/** @param {string} text */
function quiet(text) {
  return make("span", { class: "note" }, text);
}

/** @param {ConversationList} list */
function nothing({ status, hasMore }) {
  const what = status === "" ? "No feedback on conversations" : `No turn was ${status}`;
  const next =
    status === "corrected"
      ? "To correct one, open its conversation: “That was wrong” is beside what was inferred."
      : "Choose a longer one.";
  return make("p", {}, hasMore ? `${what} on this page.` : `${what} in this period. ${next}`);
}
