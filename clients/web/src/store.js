/** The optimistic state of every message on a page. @module */

import { asHearbackError } from "./client.js";
import { ABSENT, MessageState, OPPOSITE, PARENT, fulfils, same } from "./message.js";

/**
 * @typedef {import("./client.js").FeedbackClient} FeedbackClient
 * @typedef {import("./client.js").HearbackError} HearbackError
 * @typedef {import("./client.js").Signal} Signal
 * @typedef {import("./client.js").Anchors} Anchors
 * @typedef {import("./message.js").Observer} Observer
 * @typedef {import("./message.js").SignalState} SignalState
 * @typedef {import("./message.js").Wish} Wish
 * @typedef {import("./message.js").Slot} Slot
 */

/** Messages that nobody shows any more and whose state is kept, for lists that scroll. */
const KEPT_MESSAGES = 500;

/** How long what was read is shown again without another look, in milliseconds. */
const FRESH_FOR = 60_000;

/** Reads under way at a time. Browsers allow few connections to a host, and a click goes first. */
const PARALLEL_READS = 3;

/** Lets a limited number of tasks run at a time, first come, first served. */
class Gate {
  #free;
  /** @type {(() => void)[]} */
  #waiting = [];

  /** @param {number} places */
  constructor(places) {
    this.#free = places;
  }

  /** @template T @param {() => Promise<T>} task @returns {Promise<T>} */
  async run(task) {
    if (this.#free === 0) {
      await new Promise((resolve) => this.#waiting.push(() => resolve(undefined)));
    } else {
      this.#free -= 1;
    }
    try {
      return await task();
    } finally {
      const next = this.#waiting.shift();
      if (next) {
        next();
      } else {
        this.#free += 1;
      }
    }
  }
}

/**
 * The optimistic state of every message on the page.
 *
 * For each signal of each message at most one call is under way, and the next one is sent for what
 * the user wants then: a slow call never arrives after a later one, and what was wanted in between
 * is never sent. The state ends as the user's last action, or as it was before with a failure to
 * show. Nothing of it is stored in the browser.
 */
export class FeedbackStore {
  #client;
  /** @type {Map<string, MessageState>} */
  #messages = new Map();
  #reads = new Gate(PARALLEL_READS);
  #clock = 0;
  #closed = new AbortController();
  /** Tells other tabs which message to read again, and nothing else. */
  #channel = new BroadcastChannel("hearback-feedback");

  /** @param {FeedbackClient} client */
  constructor(client) {
    this.#client = client;
    const { signal } = this.#closed;
    this.#channel.addEventListener("message", ({ data }) => this.#heard(data), { signal });
    addEventListener("online", () => this.#reconnected(), { signal });
    // A page out of the back-forward cache heard of nothing meanwhile.
    addEventListener("pageshow", (event) => event.persisted && this.#readShown(), { signal });
  }

  /** Tells nobody anything any more. Calls under way are not taken back. */
  close() {
    this.#closed.abort();
    this.#channel.close();
    for (const message of this.#messages.values()) {
      message.observers.clear();
    }
  }

  /**
   * Follows a message, and reads it from the server if it is not known freshly.
   *
   * @param {string} messageId
   * @param {Observer} observer
   * @returns {() => void} ends it
   */
  subscribe(messageId, observer) {
    const message = this.#message(messageId);
    message.observers.add(observer);
    if (message.stale || message.readError || Date.now() - message.readAt > FRESH_FOR) {
      this.#read(message);
    }
    return () => {
      message.observers.delete(observer);
      this.#forget();
    };
  }

  /**
   * What is to be shown for a message.
   *
   * @param {string} messageId
   */
  snapshot(messageId) {
    const message = this.#message(messageId);
    const signals = /** @type {Record<Signal, SignalState>} */ ({});
    for (const [signal, slot] of message.slots) {
      signals[signal] = slot.shown;
    }
    const shown = (/** @type {HearbackError | null} */ error) =>
      error && !message.dismissed.has(error) ? error : null;
    const errors = [...message.failures.values()].map(({ error }) => shown(error));
    const failedReasons = /** @type {Partial<Record<Signal, string | null>>} */ ({});
    for (const [signal, { wish }] of message.failures) {
      failedReasons[signal] = wish.reason;
    }
    return {
      signals,
      pending: !message.idle,
      reading: message.reading,
      error: errors.find((error) => error !== null) ?? null,
      readError: shown(message.readError),
      failedReasons,
    };
  }

  /**
   * Does what the user wants: shows it at once, and has the server follow.
   *
   * @param {string} messageId
   * @param {Signal} signal
   * @param {boolean} active
   * @param {{ reason?: string | null } & Anchors} [options]
   */
  set(messageId, signal, active, { reason, chatId, traceId } = {}) {
    const message = this.#message(messageId);
    const slot = message.slot(signal);
    const anchors = { chatId, traceId };
    const parent = active ? PARENT[signal] : undefined;
    this.#wish(message, slot, { active, reason, anchors }, parent ? message.slot(parent) : null);
    const opposite = OPPOSITE[signal];
    if (active && opposite) {
      // Only once this one is stored: if it fails, what was said before still stands.
      this.#withdraw(message, message.slot(opposite), slot);
    }
    if (!active) {
      this.#withdrawChildren(message, slot);
    }
    this.#advance(message);
  }

  /**
   * Tries what failed again.
   *
   * @param {string} messageId
   */
  retry(messageId) {
    const message = this.#message(messageId);
    this.#wishAgain(message, () => true);
    if (message.readError) {
      this.#read(message);
    }
    this.#advance(message);
  }

  /**
   * Puts the errors of a message away. What could not be stored stays with the message, for the next attempt.
   *
   * @param {string} messageId
   */
  dismiss(messageId) {
    const message = this.#message(messageId);
    const errors = [...message.failures.values()].map(({ error }) => error);
    for (const error of [...errors, message.readError]) {
      if (error) {
        message.dismissed.add(error);
      }
    }
    message.update();
  }

  /**
   * Reads a message from the server again.
   *
   * @param {string} messageId
   * @returns {Promise<void>}
   */
  refresh(messageId) {
    return this.#read(this.#message(messageId));
  }

  /** @param {string} id */
  #message(id) {
    let message = this.#messages.get(id);
    if (!message) {
      message = new MessageState(id);
      this.#messages.set(id, message);
    }
    return message;
  }

  /** Drops the oldest states that nobody shows and nothing is under way for. */
  #forget() {
    let surplus = this.#messages.size - KEPT_MESSAGES;
    for (const [id, message] of this.#messages) {
      if (surplus <= 0) {
        return;
      }
      if (message.observers.size === 0 && message.idle && !message.reading) {
        this.#messages.delete(id);
        surplus -= 1;
      }
    }
  }

  /** @param {Slot} slot */
  #touch(slot) {
    this.#clock += 1;
    slot.touched = this.#clock;
  }

  /** @param {MessageState} message @param {Slot} slot @param {Wish} wish @param {Slot | null} after */
  #wish(message, slot, wish, after) {
    slot.wish = wish;
    slot.after = after;
    message.failures.delete(slot.signal);
    this.#touch(slot);
  }

  /**
   * Wishes again what failed, unless the user has put the failure away.
   *
   * @param {MessageState} message
   * @param {(error: HearbackError) => boolean} which
   * @returns {boolean} whether there was anything
   */
  #wishAgain(message, which) {
    const failures = [...message.failures].filter(
      ([, { error }]) => which(error) && !message.dismissed.has(error),
    );
    for (const [signal, { wish, after }] of failures) {
      this.#wish(message, message.slot(signal), { ...wish }, after && message.slot(after));
    }
    return failures.length > 0;
  }

  /** @param {MessageState} message @param {Slot} slot @param {Slot} after */
  #withdraw(message, slot, after) {
    message.failures.delete(slot.signal);
    const nothingThere = slot.sure && slot.settled && !slot.confirmed.active;
    if (!nothingThere) {
      this.#wish(message, slot, { active: false, anchors: {} }, after);
    }
    this.#withdrawChildren(message, slot);
  }

  /** @param {MessageState} message @param {Slot} parent */
  #withdrawChildren(message, parent) {
    for (const slot of message.slots.values()) {
      if (PARENT[slot.signal] === parent.signal) {
        this.#withdraw(message, slot, parent);
      }
    }
  }

  /** Takes every step that can be taken now. @param {MessageState} message */
  #advance(message) {
    if (this.#closed.signal.aborted) {
      // The next call could be made with another user's token.
      return;
    }
    let again = true;
    while (again) {
      again = false;
      for (const slot of message.slots.values()) {
        if (slot.after?.settled) {
          slot.after = null;
        }
        if (!slot.ready) {
          continue;
        }
        if (slot.needsCall) {
          this.#send(message, slot);
        } else {
          slot.wish = null;
          // Whoever waited for this one may go on.
          again = true;
        }
      }
    }
    if (message.stale && message.idle && message.observers.size > 0) {
      this.#read(message);
    }
    message.update();
  }

  /** @param {MessageState} message @param {Slot} slot */
  async #send(message, slot) {
    const wish = /** @type {Wish} */ (slot.wish);
    slot.inFlight = wish;
    this.#touch(slot);
    try {
      const created = await this.#call(message, slot.signal, wish);
      this.#confirm(message, slot, wish, created);
    } catch (error) {
      this.#reject(message, slot, wish, asHearbackError(error));
    }
    this.#advance(message);
  }

  /** @param {MessageState} message @param {Signal} signal @param {Wish} wish */
  async #call(message, signal, { active, reason, anchors }) {
    if (!active) {
      await this.#client.retract(message.id, signal);
      return false;
    }
    const feedback = { messageId: message.id, signal, reason, ...anchors };
    const { created } = await this.#client.submit(feedback);
    return created;
  }

  /** @param {MessageState} message @param {Slot} slot @param {Wish} wish @param {boolean} created */
  #confirm(message, slot, wish, created) {
    const { active, reason } = wish;
    const before = slot.confirmed;
    const wasSure = slot.sure;
    const wasUnknown = active && reason === undefined && !created && !before.active;
    if (wasUnknown || message.readError) {
      // There may be more than we know: a reason, say, or other signals. And there is a connection.
      message.stale = true;
    }
    const kept = created ? null : before.reason;
    slot.confirmed = active ? { active, reason: reason === undefined ? kept : reason } : ABSENT;
    slot.sure = true;
    slot.inFlight = null;
    if (slot.wish === wish) {
      slot.wish = null;
    }
    this.#touch(slot);
    if (!this.#closed.signal.aborted) {
      this.#channel.postMessage({ messageId: message.id });
    }
    if (!wasSure || !same(before, slot.confirmed)) {
      message.changed({ signal: slot.signal, ...slot.confirmed, source: "user" });
    }
  }

  /** @param {MessageState} message @param {Slot} slot @param {Wish} wish @param {HearbackError} error */
  #reject(message, slot, wish, error) {
    slot.inFlight = null;
    this.#touch(slot);
    if (error.uncertain) {
      // What the user wants next is sent whatever it is; if that is nothing, the server is asked.
      slot.sure = false;
      message.stale = true;
    }
    if (slot.wish === wish) {
      this.#rollBack(message, slot, error);
      message.failed(slot.signal, error);
    }
  }

  /** Gives a wish up, and those that waited for it. @param {MessageState} message @param {Slot} slot @param {HearbackError} error */
  #rollBack(message, slot, error) {
    if (slot.wish) {
      const after = slot.after?.signal ?? null;
      message.failures.set(slot.signal, { wish: slot.wish, after, error });
    }
    // A call that is still under way for an earlier wish will tell.
    slot.wish = slot.inFlight;
    slot.after = null;
    for (const other of message.slots.values()) {
      if (other.after === slot) {
        this.#rollBack(message, other, error);
      }
    }
  }

  /** @param {MessageState} message */
  async #read(message) {
    message.stale = true;
    if (message.reading) {
      return;
    }
    message.reading = true;
    message.update();
    try {
      await this.#reads.run(() => this.#readNow(message));
    } finally {
      message.reading = false;
    }
    if (message.readError) {
      message.failed(null, message.readError);
    }
    this.#advance(message);
  }

  /** @param {MessageState} message */
  async #readNow(message) {
    if (message.observers.size === 0) {
      // It scrolled away before its turn came.
      message.stale = true;
      return;
    }
    const asked = this.#clock;
    message.stale = false;
    try {
      const rows = await this.#client.list(message.id);
      message.readError = null;
      message.readAt = Date.now();
      this.#apply(message, rows, asked);
    } catch (error) {
      message.readError = asHearbackError(error);
    }
  }

  /**
   * Takes over what the server said, where nothing has happened since it was asked: about the rest
   * the answer may be older than what is known.
   *
   * @param {MessageState} message
   * @param {import("../hearback-feedback.js").FeedbackRow[]} rows
   * @param {number} asked
   */
  #apply(message, rows, asked) {
    for (const slot of message.slots.values()) {
      if (!slot.settled || slot.touched > asked) {
        message.stale = true;
        continue;
      }
      const row = rows.find(({ signal }) => signal === slot.signal);
      const before = slot.confirmed;
      slot.confirmed = row ? { active: true, reason: row.reason ?? null } : ABSENT;
      slot.sure = true;
      const failure = message.failures.get(slot.signal);
      if (failure && fulfils(slot.confirmed, failure.wish)) {
        message.failures.delete(slot.signal);
      }
      if (!same(before, slot.confirmed)) {
        message.changed({ signal: slot.signal, ...slot.confirmed, source: "server" });
      }
    }
  }

  /** Another tab changed a message. @param {unknown} data */
  #heard(data) {
    const id = /** @type {{ messageId?: unknown } | null} */ (data)?.messageId;
    const message = typeof id === "string" ? this.#messages.get(id) : undefined;
    if (message) {
      message.stale = true;
      this.#advance(message);
    }
  }

  /** Sends what found no connection, and reads what is not known. */
  #reconnected() {
    for (const message of this.#messages.values()) {
      if (this.#wishAgain(message, ({ status }) => status === 0)) {
        this.#advance(message);
      }
      if (message.unsure && message.observers.size > 0) {
        this.#read(message);
      }
    }
  }

  #readShown() {
    for (const message of this.#messages.values()) {
      message.stale = true;
      this.#advance(message);
    }
  }
}
