/** The optimistic state of all messages on a page. @module */

import { asHearbackError } from "./client.js";
import { ABSENT, MessageState, OPPOSITE, PARENT, contrary, fulfils, same } from "./message.js";

/**
 * @typedef {import("./client.js").FeedbackClient} FeedbackClient
 * @typedef {import("./client.js").HearbackError} HearbackError
 * @typedef {import("./client.js").Signal} Signal
 * @typedef {import("./client.js").Anchors} Anchors
 * @typedef {import("./message.js").Observer} Observer
 * @typedef {import("./message.js").SignalState} SignalState
 * @typedef {import("./message.js").Intent} Intent
 * @typedef {import("./message.js").Slot} Slot
 */

/** How many messages' states are cached while no element shows them, for lists that scroll. */
const CACHED_MESSAGES = 500;

/** How long a state that was read is fresh, in milliseconds. */
const FRESH_FOR = 60_000;

/** Concurrent reads. Browsers allow few connections to a host, and clicks must not wait for reads. */
const PARALLEL_READS = 3;

/** Limits the number of concurrent tasks; the others wait in order. */
class TaskLimiter {
  #free;
  /** @type {(() => void)[]} */
  #waiting = [];

  /** @param {number} limit */
  constructor(limit) {
    this.#free = limit;
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
 * The optimistic state of all messages on the page.
 *
 * At most one call is in progress for each signal of a message, and at most one for its two thumbs together. The next
 * call sends what the user wants by then. So a slow call cannot overwrite a later one, and intermediate states are not
 * sent. In the end, the state is that of the user's last action; if its call failed, it is the previous state, with an
 * error to show. Nothing is stored in the browser.
 */
export class FeedbackStore {
  #client;
  /** @type {Map<string, MessageState>} */
  #messages = new Map();
  #reads = new TaskLimiter(PARALLEL_READS);
  #clock = 0;
  #closed = new AbortController();
  /** Notifies other tabs which message to read again. */
  #channel = new BroadcastChannel("hearback-feedback");

  /** @param {FeedbackClient} client */
  constructor(client) {
    this.#client = client;
    const { signal } = this.#closed;
    this.#channel.addEventListener("message", ({ data }) => this.#onOtherTab(data), { signal });
    addEventListener("online", () => this.#reconnected(), { signal });
    // A page in the back-forward cache receives no notifications.
    addEventListener("pageshow", (event) => event.persisted && this.#readShown(), { signal });
  }

  /** Stops all notifications and further calls. Calls in progress are not cancelled. */
  close() {
    this.#closed.abort();
    this.#channel.close();
    for (const message of this.#messages.values()) {
      message.observers.clear();
    }
  }

  /**
   * Subscribes to a message, and reads it from the server unless its state is fresh.
   *
   * @param {string} messageId
   * @param {Observer} observer
   * @returns {() => void} unsubscribes
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
   * What to show for a message.
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
    for (const [signal, { intent }] of message.failures) {
      failedReasons[signal] = intent.reason;
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
   * Applies a user's action: shows it at once, and sends it to the server.
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
    this.#setIntent(message, slot, { active, reason, anchors }, parent ? message.slot(parent) : null);
    const opposite = OPPOSITE[signal];
    if (active && opposite) {
      // Withdraw the opposite signal only after this one is stored: if the call fails, the opposite signal remains.
      this.#withdraw(message, message.slot(opposite), slot);
    }
    if (!active) {
      this.#withdrawChildren(message, slot);
    }
    this.#advance(message);
  }

  /**
   * Retries failed changes that were not dismissed.
   *
   * @param {string} messageId
   */
  retry(messageId) {
    const message = this.#message(messageId);
    this.#repeatFailed(message, () => true);
    if (message.readError) {
      this.#read(message);
    }
    this.#advance(message);
  }

  /**
   * Dismisses the errors of a message, and keeps the texts that were not stored.
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

  /** Drops the oldest states that are not shown and have no calls in progress. */
  #forget() {
    let surplus = this.#messages.size - CACHED_MESSAGES;
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

  /** @param {MessageState} message @param {Slot} slot @param {Intent} intent @param {Slot | null} after */
  #setIntent(message, slot, intent, after) {
    slot.intent = intent;
    slot.after = after;
    message.failures.delete(slot.signal);
    this.#touch(slot);
  }

  /**
   * Repeats failed intents, unless the user dismissed the error.
   *
   * @param {MessageState} message
   * @param {(error: HearbackError) => boolean} which
   * @returns {boolean} whether there were any
   */
  #repeatFailed(message, which) {
    const failures = [...message.failures].filter(
      ([, { error }]) => which(error) && !message.dismissed.has(error),
    );
    for (const [signal, { intent, after }] of failures) {
      this.#setIntent(message, message.slot(signal), { ...intent }, after && message.slot(after));
    }
    return failures.length > 0;
  }

  /** @param {MessageState} message @param {Slot} slot @param {Slot} after */
  #withdraw(message, slot, after) {
    message.failures.delete(slot.signal);
    const nothingThere = slot.certain && slot.settled && !slot.confirmed.active;
    if (!nothingThere) {
      this.#setIntent(message, slot, { active: false, anchors: {} }, after);
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

  /** Handles all intents that are ready. @param {MessageState} message */
  #advance(message) {
    if (this.#closed.signal.aborted) {
      // Further calls could use another user's token.
      return;
    }
    let progress = true;
    while (progress) {
      progress = false;
      for (const slot of message.slots.values()) {
        if (slot.after?.settled) {
          slot.after = null;
        }
        const opposite = OPPOSITE[slot.signal];
        // Wait for the opposite thumb's call: if it arrived after this one, it would withdraw this one.
        if (!slot.ready || (opposite && message.slot(opposite).inFlight)) {
          continue;
        }
        if (slot.needsCall) {
          this.#send(message, slot);
        } else {
          slot.intent = null;
          // A slot that waited for this one may be ready now.
          progress = true;
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
    const intent = /** @type {Intent} */ (slot.intent);
    slot.inFlight = intent;
    this.#touch(slot);
    const sentAt = this.#clock;
    try {
      const created = await this.#call(message, slot.signal, intent);
      this.#confirm(message, slot, intent, created);
      if (intent.active) {
        this.#confirmContrary(message, slot.signal, sentAt);
      }
    } catch (error) {
      this.#reject(message, slot, intent, asHearbackError(error));
    }
    this.#advance(message);
  }

  /** @param {MessageState} message @param {Signal} signal @param {Intent} intent */
  async #call(message, signal, { active, reason, anchors }) {
    if (!active) {
      await this.#client.retract(message.id, signal);
      return false;
    }
    // The server withdraws the other thumb, too: a page that is closed now leaves no contradiction.
    const exclusive = contrary(signal).length > 0;
    const feedback = { messageId: message.id, signal, reason, exclusive, ...anchors };
    const { created } = await this.#client.submit(feedback);
    return created;
  }

  /** @param {MessageState} message @param {Slot} slot @param {Intent} intent @param {boolean} created */
  #confirm(message, slot, intent, created) {
    const { active, reason } = intent;
    const before = slot.confirmed;
    const wasCertain = slot.certain;
    const wasUnknown = active && reason === undefined && !created && !before.active;
    if (wasUnknown || message.readError) {
      // Read the message again: the server is reachable, and may have a reason or other signals.
      message.stale = true;
    }
    const kept = created ? null : before.reason;
    slot.confirmed = active ? { active, reason: reason === undefined ? kept : reason } : ABSENT;
    slot.certain = true;
    slot.inFlight = null;
    if (slot.intent === intent) {
      slot.intent = null;
    }
    this.#touch(slot);
    if (!this.#closed.signal.aborted) {
      this.#channel.postMessage({ messageId: message.id });
    }
    if (!wasCertain || !same(before, slot.confirmed)) {
      message.changed({ signal: slot.signal, ...slot.confirmed, source: "user" });
    }
  }

  /**
   * The server has withdrawn what contradicts a stored signal.
   *
   * @param {MessageState} message
   * @param {Signal} signal
   * @param {number} sentAt
   */
  #confirmContrary(message, signal, sentAt) {
    for (const slot of contrary(signal).map((name) => message.slot(name))) {
      const before = slot.confirmed;
      slot.confirmed = ABSENT;
      // If the user has changed this signal since then, the server may have stored that before or after withdrawing it.
      slot.certain = !slot.inFlight && slot.touched <= sentAt;
      this.#touch(slot);
      if (!same(before, ABSENT)) {
        message.changed({ signal: slot.signal, ...ABSENT, source: "user" });
      }
    }
  }

  /** @param {MessageState} message @param {Slot} slot @param {Intent} intent @param {HearbackError} error */
  #reject(message, slot, intent, error) {
    slot.inFlight = null;
    this.#touch(slot);
    if (error.uncertain) {
      // Send the next intent in any case; without one, read the state.
      slot.certain = false;
      message.stale = true;
    }
    if (slot.intent === intent) {
      this.#rollBack(message, slot, error);
      message.failed(slot.signal, error);
    }
  }

  /** Gives up an intent and those that depend on it. @param {MessageState} message @param {Slot} slot @param {HearbackError} error */
  #rollBack(message, slot, error) {
    if (slot.intent) {
      const after = slot.after?.signal ?? null;
      message.failures.set(slot.signal, { intent: slot.intent, after, error });
    }
    // A call for an earlier intent may still be in progress.
    slot.intent = slot.inFlight;
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
      // It is no longer shown.
      message.stale = true;
      return;
    }
    const requestedAt = this.#clock;
    message.stale = false;
    try {
      const rows = await this.#client.list(message.id);
      message.readError = null;
      message.readAt = Date.now();
      this.#apply(message, rows, requestedAt);
    } catch (error) {
      message.readError = asHearbackError(error);
    }
  }

  /**
   * Applies what was read to the slots that have not changed since the request. For the others, the response may be
   * outdated.
   *
   * @param {MessageState} message
   * @param {import("../hearback-feedback.js").FeedbackRow[]} rows
   * @param {number} requestedAt
   */
  #apply(message, rows, requestedAt) {
    for (const slot of message.slots.values()) {
      if (!slot.settled || slot.touched > requestedAt) {
        message.stale = true;
        continue;
      }
      const row = rows.find(({ signal }) => signal === slot.signal);
      const before = slot.confirmed;
      slot.confirmed = row ? { active: true, reason: row.reason ?? null } : ABSENT;
      slot.certain = true;
      const failure = message.failures.get(slot.signal);
      if (failure && fulfils(slot.confirmed, failure.intent)) {
        message.failures.delete(slot.signal);
      }
      if (!same(before, slot.confirmed)) {
        message.changed({ signal: slot.signal, ...slot.confirmed, source: "server" });
      }
    }
  }

  /** Handles the notification that another tab changed a message. @param {unknown} data */
  #onOtherTab(data) {
    const id = /** @type {{ messageId?: unknown } | null} */ (data)?.messageId;
    const message = typeof id === "string" ? this.#messages.get(id) : undefined;
    if (message) {
      message.stale = true;
      this.#advance(message);
    }
  }

  /** Repeats changes that failed without a connection, and reads uncertain states. */
  #reconnected() {
    for (const message of this.#messages.values()) {
      if (this.#repeatFailed(message, ({ status }) => status === 0)) {
        this.#advance(message);
      }
      if (message.uncertain && message.observers.size > 0) {
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
