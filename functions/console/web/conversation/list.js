/**
 * The conversations of a period, as far as they are loaded. The API has no order by satisfaction, so an order covers
 * what is loaded.
 *
 * @module
 */

import { conversationsInPeriod, corrections, turnsByStatus } from "../api.js";
import { inclusive } from "../period.js";

/** As many as one request returns. */
const PAGE = 500;

/** @typedef {"" | "rejected" | "accepted" | "corrected"} Status Of turns; "" for all conversations with feedback. */
/** @typedef {{ total: number, user: number, machine: number, ok: number, not_ok: number, neutral: number }} Counts */

/**
 * `rate` and `counts` are known without a status; `turns` with one, the latest first.
 *
 * @typedef {{ id: string, at: string, rate: number | null, counts: Counts | null, turns: any[] }} Row
 */

export class ConversationList {
  /** @type {Map<string, Row>} */
  #rows = new Map();
  /** @type {string | null | undefined} `undefined` before the first page */
  #cursor = undefined;
  /** @type {Map<string, string>} */
  #quotes = new Map();
  /** @type {string | null | undefined} */
  #quotesCursor = undefined;

  /** @param {{ project: string, period: import("../period.js").Period, status: Status }} of */
  constructor({ project, period, status }) {
    this.project = project;
    this.period = period;
    this.status = status;
  }

  get hasMore() {
    return this.#cursor !== null;
  }

  get size() {
    return this.#rows.size;
  }

  /** Loads the next page. @param {AbortSignal} signal */
  async load(signal) {
    switch (this.status) {
      case "":
        return this.#loadReport(signal);
      case "rejected":
        // Of turns, the report has the words. It may have them of other turns than this page.
        await Promise.all([this.#loadTurns("rejected", signal), this.#loadQuotes(signal)]);
        return;
      case "accepted":
        return this.#loadTurns("accepted", signal);
      case "corrected":
        return this.#loadCorrections(signal);
    }
  }

  /** @param {AbortSignal} signal */
  async #loadReport(signal) {
    const page = await this.#report(this.#cursor, signal);
    for (const { conversation_id: id, last_activity_at: at, satisfaction_rate: rate, ...item } of page.items) {
      this.#rows.set(id, { id, at, rate, counts: item.feedback_counts, turns: [] });
      this.#quote(id, item.turns);
    }
    this.#cursor = page.next_cursor;
  }

  /** @param {AbortSignal} signal */
  async #loadQuotes(signal) {
    if (this.#quotesCursor !== null) {
      const page = await this.#report(this.#quotesCursor, signal);
      for (const { conversation_id: id, turns } of page.items) {
        this.#quote(id, turns);
      }
      this.#quotesCursor = page.next_cursor;
    }
  }

  /**
   * With more feedback than a page holds, a conversation continues on the next page.
   *
   * @param {string} id
   * @param {any[]} turns
   */
  #quote(id, turns) {
    this.#quotes.set(id, this.#quotes.get(id) || quoteOf(turns));
  }

  /** @param {string | undefined | null} cursor @param {AbortSignal} signal */
  #report(cursor, signal) {
    const body = { ...inclusive(this.period), include_turns: true, limit: PAGE, cursor };
    return conversationsInPeriod(this.project, body, signal);
  }

  /** @param {"rejected" | "accepted"} status @param {AbortSignal} signal */
  async #loadTurns(status, signal) {
    const { start, end } = inclusive(this.period);
    const cursor = this.#cursor ?? undefined;
    const query = { user_feedback_status: status, from: start, to: end, limit: PAGE, cursor };
    const page = await turnsByStatus(this.project, query, signal);
    for (const turn of page.turns) {
      this.#add(turn.conversation_id, turn.ts, turn);
    }
    this.#cursor = page.next_cursor;
  }

  /** @param {AbortSignal} signal */
  async #loadCorrections(signal) {
    const { start, end } = inclusive(this.period);
    const query = { from: start, to: end, limit: PAGE, cursor: this.#cursor ?? undefined };
    const page = await corrections(this.project, query, signal);
    for (const each of page.corrections) {
      this.#add(each.conversation_id, each.ts, each);
      this.#quotes.set(each.conversation_id, this.#quotes.get(each.conversation_id) || (each.message ?? ""));
    }
    this.#cursor = page.next_cursor;
  }

  /** @param {string} id @param {string} at @param {any} turn */
  #add(id, at, turn) {
    /** @type {Row} */
    const row = this.#rows.get(id) ?? { id, at, rate: null, counts: null, turns: [] };
    row.turns.push(turn);
    this.#rows.set(id, row);
  }

  /**
   * What a user said in a conversation against an answer, or else for one; "" if that is not loaded.
   *
   * @param {Row} row
   */
  quoteOf({ id }) {
    return this.#quotes.get(id) ?? "";
  }

  /** What is loaded, the worst first. Accepted turns do not differ, so the latest is first. @returns {Row[]} */
  get sorted() {
    return [...this.#rows.values()].sort((a, b) => {
      switch (this.status) {
        case "":
          return (a.rate ?? 1) - (b.rate ?? 1) || (b.counts?.not_ok ?? 0) - (a.counts?.not_ok ?? 0) || latest(a, b);
        case "rejected":
          return b.turns.length - a.turns.length || latest(a, b);
        case "accepted":
        case "corrected":
          return latest(a, b);
      }
    });
  }
}

/** @param {Row} a @param {Row} b */
function latest(a, b) {
  return Date.parse(b.at) - Date.parse(a.at);
}

/** The latest words against an answer, or else for one. @param {any[]} turns */
function quoteOf(turns) {
  const said = turns.flatMap(({ feedbacks }) => feedbacks).filter(({ text }) => text !== "");
  const against = said.filter(({ reaction }) => reaction === "not_ok");
  return (against[0] ?? said[0])?.text ?? "";
}
