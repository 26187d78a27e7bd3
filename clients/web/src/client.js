/** A client of the feedback API. @module */

/** All signals. */
export const SIGNALS = Object.freeze([
  "helpful",
  "not_helpful",
  "inaccurate",
  "unsafe",
  "edit",
  "regenerate",
]);

/** Maximum length of a reason, in code points. */
export const MAX_REASON = 4096;

/**
 * @typedef {"helpful" | "not_helpful" | "inaccurate" | "unsafe" | "edit" | "regenerate"} Signal
 * @typedef {{ chatId?: string | null, traceId?: string | null }} Anchors
 */

/** A failed call. */
export class HearbackError extends Error {
  /**
   * @param {string} message
   * @param {{ status?: number, problem?: object | null, cause?: unknown }} [details]
   */
  constructor(message, { status = 0, problem = null, cause } = {}) {
    super(message, { cause });
    this.name = "HearbackError";
    /** The HTTP status; 0 without a response. */
    this.status = status;
    /** The problem document (RFC 9457), if the response was one. */
    this.problem = problem;
  }

  /** Whether the call may have succeeded on the server. */
  get uncertain() {
    return this.status === 0 || this.status === 408 || this.status >= 500;
  }

  /** Whether the same call may succeed later. */
  get retryable() {
    return this.uncertain || RETRYABLE_STATUSES.includes(this.status);
  }
}

/** Unauthorized, conflict, too early, too many requests. */
const RETRYABLE_STATUSES = [401, 409, 425, 429];

/** The syntax of RFC 6750. With other characters, `fetch` would throw. */
const BEARER_TOKEN = /^[A-Za-z0-9._~+/-]+=*$/;

/** Redacted in messages: text that may be a token or a part of one. */
const SECRETS = /[A-Za-z0-9._~+/=-]{20,}/g;

/** Browsers limit the bodies of all pending `keepalive` requests to 64 KiB, and reject larger ones. */
const MAX_KEEPALIVE_BODY = 4096;

/** The path of the signals. */
const SIGNALS_PATH = "/api/v1/feedback";

/** The feedback endpoints. */
export class FeedbackClient {
  #url;
  #token;
  #timeout;
  /** Messages that were written to the console already. @type {Set<string>} */
  #reported = new Set();

  /**
   * @param {{
   *   baseUrl?: string,
   *   token?: string | null | (() => string | null | Promise<string | null>),
   *   timeout?: number,
   * }} [options] A token function is called before each request; `timeout` is in milliseconds.
   */
  constructor({ baseUrl = "", token = null, timeout = 30_000 } = {}) {
    this.#url = baseUrl.replace(/\/+$/, "");
    this.#token = token;
    this.#timeout = timeout;
  }

  /**
   * Submits a signal on a message. Can be repeated. With `exclusive`, the server then withdraws the contrary ones.
   *
   * @param {{ messageId: string, signal: Signal, reason?: string | null, exclusive?: boolean } & Anchors} feedback
   * @returns {Promise<{ id: string, created: boolean }>}
   */
  async submit({ messageId, signal, chatId, traceId, reason, exclusive }) {
    const body = {
      message_id: messageId,
      signal,
      chat_id: chatId || undefined,
      trace_id: traceId || undefined,
      // The server rejects lone surrogates.
      reason: typeof reason === "string" ? reason.toWellFormed() : reason,
      exclusive: exclusive || undefined,
    };
    const { status, json } = await this.#call("POST", SIGNALS_PATH, JSON.stringify(body));
    return { id: json.id, created: status === 201 };
  }

  /**
   * Withdraws a signal. It is no error if there is none.
   *
   * @param {string} messageId
   * @param {Signal} signal
   */
  async retract(messageId, signal) {
    await this.#call("DELETE", `${SIGNALS_PATH}?${new URLSearchParams({ message_id: messageId, signal })}`);
  }

  /**
   * The caller's signals on a message.
   *
   * @param {string} messageId
   * @returns {Promise<import("../hearback-feedback.js").FeedbackRow[]>}
   */
  async list(messageId) {
    const rows = [];
    const query = new URLSearchParams({ message_id: messageId });
    for (;;) {
      const { json } = await this.#call("GET", `${SIGNALS_PATH}?${query}`);
      rows.push(...json.feedback);
      if (!json.next_cursor) {
        return rows;
      }
      query.set("cursor", json.next_cursor);
    }
  }

  /**
   * A ticket, which opens one connection to the live feed.
   *
   * @returns {Promise<{ ticket: string, url: string }>}
   */
  async ticket() {
    const { json } = await this.#call("POST", "/v1/feedback/events/ticket");
    return json;
  }

  /**
   * @param {string} method
   * @param {string} path
   * @param {string} [body]
   */
  async #call(method, path, body) {
    const headers = await this.#headers(body !== undefined);
    let response;
    let text;
    try {
      response = await fetch(this.#url + path, {
        method,
        headers,
        body,
        cache: "no-store",
        // A redirect to a sign-in page would look like a success.
        redirect: "error",
        // A click just before the page is closed must arrive.
        keepalive: method !== "GET" && (body?.length ?? 0) <= MAX_KEEPALIVE_BODY,
        // A call that hangs would block the next one.
        signal: AbortSignal.timeout(this.#timeout),
      });
      text = await response.text();
    } catch (cause) {
      throw new HearbackError("The server cannot be reached.", { cause });
    }
    const json = parsed(text);
    if (!response.ok) {
      const message = json?.detail ?? json?.title ?? `The server responded with ${response.status}.`;
      throw new HearbackError(message, { status: response.status, problem: json });
    }
    if (json === null && response.status !== 204) {
      throw new HearbackError("The response is not from the feedback service.");
    }
    return { status: response.status, json };
  }

  /** @param {boolean} withBody */
  async #headers(withBody) {
    const headers = new Headers({ Accept: "application/json, application/problem+json" });
    if (withBody) {
      headers.set("Content-Type", "application/json");
    }
    const token = await this.#currentToken();
    if (token) {
      headers.set("Authorization", `Bearer ${token}`);
    }
    return headers;
  }

  /** @returns {Promise<string | null>} null if the page configured none */
  async #currentToken() {
    const configured = this.#token ?? "";
    if (configured === "") {
      return null;
    }
    const token = typeof configured === "function" ? await this.#callTokenFunction(configured) : configured;
    if (!token) {
      throw this.#noToken("the token function returned no token");
    }
    if (typeof token !== "string" || !BEARER_TOKEN.test(token)) {
      throw this.#noToken("the token cannot be sent: it must be a string without white space");
    }
    return token;
  }

  /** @param {() => string | null | Promise<string | null>} ask */
  async #callTokenFunction(ask) {
    const timeout = AbortSignal.timeout(this.#timeout);
    const late = new Promise((_, reject) => {
      timeout.addEventListener("abort", () => reject(timeout.reason), { once: true });
    });
    try {
      // The wrapper turns a synchronous throw into a rejection, so that `late` always has a handler.
      return await Promise.race([(async () => ask())(), late]);
    } catch (cause) {
      if (timeout.aborted && cause === timeout.reason) {
        throw this.#noToken("the token function did not answer in time", cause);
      }
      const detail = cause instanceof Error ? `${cause.name}: ${cause.message}` : typeof cause;
      throw this.#noToken(`the token function threw ${detail.replace(SECRETS, "…")}`, cause);
    }
  }

  /**
   * The error of a call that was not sent because there is no valid token. The user sees the same as when the server
   * rejects a token. The reason is logged to the console, for the developer.
   *
   * @param {string} message
   * @param {unknown} [cause]
   */
  #noToken(message, cause) {
    if (!this.#reported.has(message)) {
      this.#reported.add(message);
      console.error(`hearback-feedback: ${message}`);
    }
    return new HearbackError(message, { status: 401, cause });
  }
}

/** @param {string} text */
function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

/** @param {unknown} error */
export function asHearbackError(error) {
  return error instanceof HearbackError
    ? error
    : new HearbackError("The response cannot be read.", { cause: error });
}
