/** The state of one message: what the user wants, and what the server has confirmed. @module */

import { SIGNALS } from "./client.js";

/**
 * @typedef {import("./client.js").Signal} Signal
 * @typedef {import("./client.js").Anchors} Anchors
 * @typedef {import("./client.js").HearbackError} HearbackError
 * @typedef {{ active: boolean, reason: string | null }} SignalState
 * @typedef {{ active: boolean, reason?: string | null, anchors: Anchors }} Intent
 *   Without a reason, the stored one is kept.
 * @typedef {{ intent: Intent, after: Signal | null, error: HearbackError }} Failure
 * @typedef {{ signal: Signal, active: boolean, reason: string | null, source: "user" | "server" }} Change
 * @typedef {object} Observer
 * @property {() => void} update The snapshot may have changed.
 * @property {(change: Change) => void} [change] The server's state of a signal has changed.
 * @property {(signal: Signal | null, error: HearbackError) => void} [error]
 */

/** @type {Readonly<SignalState>} */
export const ABSENT = Object.freeze({ active: false, reason: null });

/** Signals that exclude each other. @type {Partial<Record<Signal, Signal>>} */
export const OPPOSITE = { helpful: "not_helpful", not_helpful: "helpful" };

/** Signals that require another one: they are sent after it and withdrawn with it. @type {Partial<Record<Signal, Signal>>} */
export const PARENT = { inaccurate: "not_helpful", unsafe: "not_helpful" };

/** The signals that the server withdraws once a thumb is stored. @param {Signal} signal */
export function contrary(signal) {
  const opposite = OPPOSITE[signal];
  return opposite ? SIGNALS.filter((name) => name === opposite || PARENT[name] === opposite) : [];
}

/** @param {Intent} intent @param {SignalState} state */
export function fulfils(state, intent) {
  const sameReason = intent.reason === undefined || intent.reason === state.reason;
  return state.active === intent.active && (!intent.active || sameReason);
}

/** @param {SignalState} one @param {SignalState} other */
export function same(one, other) {
  return one.active === other.active && one.reason === other.reason;
}

/** One signal on one message. */
export class Slot {
  /** The last known state of the server. @type {SignalState} */
  confirmed = ABSENT;
  /** Whether that state is certain: not before the first read, and not after a call with an unknown outcome. */
  certain = false;
  /** What the user wants and the server has not confirmed yet. @type {Intent | null} */
  intent = null;
  /** The intent is sent once this slot is settled, and fails with it. @type {Slot | null} */
  after = null;
  /** The intent that is being sent. @type {Intent | null} */
  inFlight = null;
  /** The store's logical time of the last change. */
  touched = 0;

  /** @param {Signal} signal */
  constructor(signal) {
    this.signal = signal;
  }

  /** The state to show. @returns {SignalState} */
  get shown() {
    if (!this.intent) {
      return this.confirmed;
    }
    const { active, reason = this.confirmed.reason } = this.intent;
    return active ? { active, reason } : ABSENT;
  }

  get settled() {
    return !this.intent && !this.inFlight;
  }

  /** Whether there is an intent that can be handled now. */
  get ready() {
    return this.intent !== null && !this.inFlight && this.after === null;
  }

  /** Whether the intent requires a call. */
  get needsCall() {
    return this.intent !== null && !(this.certain && fulfils(this.confirmed, this.intent));
  }
}

/** The state of one message. */
export class MessageState {
  /** @type {Map<Signal, Slot>} */
  slots = new Map(
    SIGNALS.map((name) => [/** @type {Signal} */ (name), new Slot(/** @type {Signal} */ (name))]),
  );
  /** Intents that failed and were not repeated. @type {Map<Signal, Failure>} */
  failures = new Map();
  /** @type {HearbackError | null} */
  readError = null;
  /** @type {Set<Observer>} */
  observers = new Set();
  /** Errors that the user dismissed. @type {WeakSet<HearbackError>} */
  dismissed = new WeakSet();
  reading = false;
  /** Whether the server may have a newer state. */
  stale = true;
  readAt = 0;

  /** @param {string} id */
  constructor(id) {
    this.id = id;
  }

  /** @param {Signal} signal */
  slot(signal) {
    const slot = this.slots.get(signal);
    if (!slot) {
      throw new TypeError(`${signal} is not a signal`);
    }
    return slot;
  }

  get idle() {
    return [...this.slots.values()].every((slot) => slot.settled);
  }

  get uncertain() {
    return this.readError !== null || [...this.slots.values()].some((slot) => !slot.certain);
  }

  update() {
    for (const observer of [...this.observers]) {
      observer.update();
    }
  }

  /** @param {Change} change */
  changed(change) {
    for (const observer of [...this.observers]) {
      observer.change?.(change);
    }
  }

  /** @param {Signal | null} signal @param {HearbackError} error */
  failed(signal, error) {
    for (const observer of [...this.observers]) {
      observer.error?.(signal, error);
    }
  }
}
