/** What is known of one message: what its user wishes, and what the server has confirmed. @module */

import { SIGNALS } from "./client.js";

/**
 * @typedef {import("./client.js").Signal} Signal
 * @typedef {import("./client.js").Anchors} Anchors
 * @typedef {import("./client.js").HearbackError} HearbackError
 * @typedef {{ active: boolean, reason: string | null }} SignalState
 * @typedef {{ active: boolean, reason?: string | null, anchors: Anchors }} Wish
 *   A reason that is left out leaves the stored one as it is.
 * @typedef {{ wish: Wish, after: Signal | null, error: HearbackError }} Failure
 * @typedef {{ signal: Signal, active: boolean, reason: string | null, source: "user" | "server" }} Change
 * @typedef {object} Observer
 * @property {() => void} update Something that is shown may have changed.
 * @property {(change: Change) => void} [change] The server's state of a signal is another one.
 * @property {(signal: Signal | null, error: HearbackError) => void} [error]
 */

/** @type {Readonly<SignalState>} */
export const ABSENT = Object.freeze({ active: false, reason: null });

/** The thumbs exclude each other. @type {Partial<Record<Signal, Signal>>} */
export const OPPOSITE = { helpful: "not_helpful", not_helpful: "helpful" };

/** What hangs on another signal: it comes after that one and goes with it. @type {Partial<Record<Signal, Signal>>} */
export const PARENT = { inaccurate: "not_helpful", unsafe: "not_helpful" };

/** @param {Wish} wish @param {SignalState} state */
export function fulfils(state, wish) {
  const sameReason = wish.reason === undefined || wish.reason === state.reason;
  return state.active === wish.active && (!wish.active || sameReason);
}

/** @param {SignalState} one @param {SignalState} other */
export function same(one, other) {
  return one.active === other.active && one.reason === other.reason;
}

/** One signal on one message. */
export class Slot {
  /** What the server is believed to have. @type {SignalState} */
  confirmed = ABSENT;
  /** Whether that is known: not before the first read, and not after a call of unknown fate. */
  sure = false;
  /** What the user wants and the server has not confirmed. @type {Wish | null} */
  wish = null;
  /** The wish is sent once this one is settled, and fails with it. @type {Slot | null} */
  after = null;
  /** The wish that a call is carrying. @type {Wish | null} */
  inFlight = null;
  /** When, on the store's clock, anything last happened to it. */
  touched = 0;

  /** @param {Signal} signal */
  constructor(signal) {
    this.signal = signal;
  }

  /** What the user sees. @returns {SignalState} */
  get shown() {
    if (!this.wish) {
      return this.confirmed;
    }
    const { active, reason = this.confirmed.reason } = this.wish;
    return active ? { active, reason } : ABSENT;
  }

  get settled() {
    return !this.wish && !this.inFlight;
  }

  /** Whether the next step, if there is one, may be taken. */
  get ready() {
    return this.wish !== null && !this.inFlight && this.after === null;
  }

  /** Whether that step needs the server. */
  get needsCall() {
    return this.wish !== null && !(this.sure && fulfils(this.confirmed, this.wish));
  }
}

/** What is known of one message. */
export class MessageState {
  /** @type {Map<Signal, Slot>} */
  slots = new Map(
    SIGNALS.map((name) => [/** @type {Signal} */ (name), new Slot(/** @type {Signal} */ (name))]),
  );
  /** What was wished, refused and not wished again. @type {Map<Signal, Failure>} */
  failures = new Map();
  /** @type {HearbackError | null} */
  readError = null;
  /** @type {Set<Observer>} */
  observers = new Set();
  /** Errors that the user has seen and put away. @type {WeakSet<HearbackError>} */
  dismissed = new WeakSet();
  reading = false;
  /** Whether there may be news on the server. */
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
      throw new TypeError(`${signal} is no signal`);
    }
    return slot;
  }

  get idle() {
    return [...this.slots.values()].every((slot) => slot.settled);
  }

  get unsure() {
    return this.readError !== null || [...this.slots.values()].some((slot) => !slot.sure);
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
