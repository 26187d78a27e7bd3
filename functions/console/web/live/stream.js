/** What was published since the reader came, read from the feed again and again (docs/reference/feed.md). @module */

import { feed } from "../api.js";
import { collected } from "../conversation/ledger.js";

const PAGE = 500;
/** Of one reading; the next one continues there. */
const MAX_PAGES = 10;
/** Messages that are kept: an event and its learning signals are two to four. */
const MAX_MESSAGES = 2_000;
/** What the reader finds at first. */
const BEFORE_MS = 15 * 60_000;

/** @typedef {import("../conversation/ledger.js").Published} Published */

export class Stream {
  /** @type {Map<string, any>} */
  #messages = new Map();
  /** @type {string | undefined} */
  #after = undefined;
  #since = new Date(Date.now() - BEFORE_MS).toISOString();
  #query;

  /** @param {import("../api.js").Query} query */
  constructor(query) {
    this.#query = query;
  }

  /** Reads what is new, and returns it. @param {AbortSignal} signal */
  async read(signal) {
    const after = this.#after;
    const query = { ...this.#query, limit: PAGE, ...(after ? { after } : { since: this.#since }) };
    const added = [];
    let cursor;
    for (let page = 0; page < MAX_PAGES && cursor !== null; page += 1) {
      const { events, next_cursor: next, last_event_id: last } = await feed({ ...query, cursor }, signal);
      for (const each of events) {
        // The feed repeats what is so recent that something before it may appear.
        if (!this.#messages.has(each.eventId)) {
          this.#messages.set(each.eventId, each);
          added.push(each);
        }
      }
      this.#after = last ?? this.#after;
      cursor = next;
    }
    const surplus = this.#messages.size - MAX_MESSAGES;
    for (const id of [...this.#messages.keys()].slice(0, Math.max(0, surplus))) {
      this.#messages.delete(id);
    }
    return added;
  }

  /** Feedback with its learning signals, the latest first. @returns {Published[]} */
  get feedback() {
    const found = collected([...this.#messages.values()]);
    return found.sort((a, b) => Date.parse(b.event.publishedAt) - Date.parse(a.event.publishedAt));
  }
}
