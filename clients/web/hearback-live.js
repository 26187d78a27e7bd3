/**
 * Receives feedback events as they happen, each once, also across lost connections.
 *
 * ```js
 * const feed = followFeed({ token: () => session.accessToken(), onEvent: (event) => show(event) });
 * // …
 * feed.close();
 * ```
 *
 * @module
 */

import { FeedbackClient, HearbackError, asHearbackError } from "./src/client.js";

export { HearbackError };

/** How often the connection is tested, in milliseconds: a server closes one that is idle for ten minutes. */
const PING_EVERY = 2 * 60_000;
/** How long the server may take to accept the subscription, in milliseconds. */
const SUBSCRIBED_WITHIN = 30_000;
/** The shortest and the longest wait before another connection, in milliseconds. */
const FIRST_WAIT = 1_000;
const LONGEST_WAIT = 60_000;
/** How many received events are recognised when they are repeated. */
const REMEMBERED = 5_000;

/**
 * @typedef {import("./hearback-live.js").FeedEvent} FeedEvent
 * @typedef {import("./hearback-live.js").FeedFilter} FeedFilter
 * @typedef {import("./hearback-live.js").FeedState} FeedState
 */

/**
 * Follows the feed until it is closed, or until the server rejects it for good.
 *
 * @param {{
 *   onEvent: (event: FeedEvent) => void,
 *   onState?: (state: FeedState, error: HearbackError | null) => void,
 *   after?: string | null,
 *   filter?: FeedFilter,
 *   baseUrl?: string,
 *   token?: string | null | (() => string | null | Promise<string | null>),
 *   timeout?: number,
 * }} options A token function is called before each connection. With `after`, an `eventId` or a `lastEventId`, everything
 *   later is received first.
 * @returns {{ close(): void, readonly lastEventId: string | null }} `lastEventId` is where another page can continue.
 */
export function followFeed({ onEvent, onState = () => {}, after = null, filter, ...options }) {
  const client = new FeedbackClient(options);
  const closing = new AbortController();
  /** @type {Set<string>} */
  const known = new Set();
  let last = after;

  /** The page's function must not break the connection. @param {() => void} call */
  const tell = (call) => {
    try {
      call();
    } catch (error) {
      reportError(error);
    }
  };

  /** @param {FeedEvent} event */
  const receive = (event) => {
    if (known.has(event.eventId) || closing.signal.aborted) {
      return;
    }
    known.add(event.eventId);
    if (known.size > REMEMBERED) {
      const [oldest] = known;
      known.delete(oldest);
    }
    tell(() => onEvent(event));
  };

  /** Connects, and returns when the connection has ended, with the time at which it was open. */
  const connect = async () => {
    const { ticket, url } = await client.ticket();
    closing.signal.throwIfAborted();
    const socket = new WebSocket(`${url}?ticket=${encodeURIComponent(ticket)}`);
    let isAlive = true;
    let opened = Infinity;
    const ended = Promise.withResolvers();
    /** @param {object} frame */
    const send = (frame) => socket.send(JSON.stringify(frame));
    const ping = setInterval(() => {
      if (!isAlive) {
        ended.resolve(undefined);
      } else if (socket.readyState === WebSocket.OPEN) {
        isAlive = false;
        send({ action: "ping" });
      }
    }, PING_EVERY);
    const late = setTimeout(ended.resolve, SUBSCRIBED_WITHIN);
    closing.signal.addEventListener("abort", ended.resolve);
    socket.onclose = ended.resolve;
    socket.onopen = () => send({ action: "subscribe", after: last, filter });
    socket.onmessage = ({ data }) => {
      isAlive = true;
      const frame = JSON.parse(data);
      if (frame.type === "subscribed") {
        clearTimeout(late);
        opened = performance.now();
        last = frame.lastEventId;
        tell(() => onState("open", null));
      } else if (frame.type === "events") {
        frame.events.forEach(receive);
        // Once closed, the rest of the frame was not handed out.
        if (!closing.signal.aborted) {
          last = frame.lastEventId;
        }
      } else if (frame.type === "error" || !frame.type) {
        // If the function fails, API Gateway answers with a frame without a type.
        const status = STATUSES.get(frame.error) ?? 503;
        ended.reject(new HearbackError(frame.detail ?? frame.message, { status, problem: frame }));
      }
    };
    try {
      await ended.promise;
      return opened;
    } finally {
      clearInterval(ping);
      clearTimeout(late);
      closing.signal.removeEventListener("abort", ended.resolve);
      socket.onopen = socket.onclose = socket.onmessage = null;
      socket.close();
    }
  };

  const follow = async () => {
    let wait = FIRST_WAIT;
    while (!closing.signal.aborted) {
      tell(() => onState("connecting", null));
      let error = new HearbackError("The connection was lost.");
      try {
        const opened = await connect();
        // After a connection that lasted, the next one is tried soon.
        if (performance.now() - opened > LONGEST_WAIT) {
          wait = FIRST_WAIT;
        }
      } catch (failure) {
        error = asHearbackError(failure);
      }
      if (closing.signal.aborted) {
        break;
      }
      if (!error.retryable) {
        tell(() => onState("closed", error));
        return;
      }
      tell(() => onState("waiting", error));
      // Many pages that lost their connections do not return at once.
      await pause(wait * (0.5 + Math.random() / 2), closing.signal);
      wait = Math.min(2 * wait, LONGEST_WAIT);
    }
    tell(() => onState("closed", null));
  };
  follow();

  return {
    close: () => closing.abort(),
    get lastEventId() {
      return last;
    },
  };
}

/** The HTTP statuses of the errors that a frame can have. */
const STATUSES = new Map([
  ["invalid_request", 400],
  ["forbidden", 403],
]);

/**
 * Waits until the time is over, the browser is online again, or the feed is closed.
 *
 * @param {number} milliseconds
 * @param {AbortSignal} signal
 */
function pause(milliseconds, signal) {
  return new Promise((resolve) => {
    if (signal.aborted) {
      resolve(undefined);
      return;
    }
    const done = () => {
      clearTimeout(timer);
      removeEventListener("online", done);
      signal.removeEventListener("abort", done);
      resolve(undefined);
    };
    const timer = setTimeout(done, milliseconds);
    addEventListener("online", done);
    signal.addEventListener("abort", done);
  });
}
