/** The feedback endpoints over HTTP. @module */

/** Every signal that a message can carry. */
export const SIGNALS = Object.freeze([
  "helpful",
  "not_helpful",
  "inaccurate",
  "unsafe",
  "edit",
  "regenerate",
]);

/** Longest reason that the server takes, in code points. */
export const MAX_REASON = 4096;

/**
 * @typedef {"helpful" | "not_helpful" | "inaccurate" | "unsafe" | "edit" | "regenerate"} Signal
 * @typedef {{ chatId?: string | null, traceId?: string | null }} Anchors
 */

/** A call that brought no success. */
export class HearbackError extends Error {
  /**
   * @param {string} message
   * @param {{ status?: number, problem?: object | null, cause?: unknown }} [details]
   */
  constructor(message, { status = 0, problem = null, cause } = {}) {
    super(message, { cause });
    this.name = "HearbackError";
    /** The HTTP status; 0 if no answer came. */
    this.status = status;
    /** The problem document (RFC 9457), if the answer was one. */
    this.problem = problem;
  }

  /** Whether the server may have done it all the same. */
  get uncertain() {
    return this.status === 0 || this.status === 408 || this.status >= 500;
  }

  /** Whether the same call may succeed later. */
  get retryable() {
    return this.uncertain || RETRYABLE.includes(this.status);
  }
}

/** Signed out, another operation under way, too early, too many calls. */
const RETRYABLE = [401, 409, 425, 429];

/** What RFC 6750 allows in a header; anything else would make the browser refuse the whole call. */
const BEARER_TOKEN = /^[A-Za-z0-9._~+/-]+=*$/;

/** What may be a token, or a part of one, in a message about it. */
const SECRETS = /[A-Za-z0-9._~+/=-]{20,}/g;

/** Browsers limit what calls with `keepalive` carry altogether to 64 KiB, and refuse what is beyond. */
const MAX_KEEPALIVE_BODY = 4096;

/** The feedback endpoints. */
export class FeedbackClient {
  #url;
  #token;
  #timeout;
  /** What was written to the console, once each. @type {Set<string>} */
  #reported = new Set();

  /**
   * @param {{
   *   baseUrl?: string,
   *   token?: string | null | (() => string | null | Promise<string | null>),
   *   timeout?: number,
   * }} [options] A token that is a function is asked before each call; `timeout` is in milliseconds.
   */
  constructor({ baseUrl = "", token = null, timeout = 30_000 } = {}) {
    this.#url = `${baseUrl.replace(/\/+$/, "")}/api/v1/feedback`;
    this.#token = token;
    this.#timeout = timeout;
  }

  /**
   * Says a signal on a message, or says it again.
   *
   * @param {{ messageId: string, signal: Signal, reason?: string | null } & Anchors} feedback
   * @returns {Promise<{ id: string, created: boolean }>}
   */
  async submit({ messageId, signal, chatId, traceId, reason }) {
    const body = {
      message_id: messageId,
      signal,
      chat_id: chatId || undefined,
      trace_id: traceId || undefined,
      // Half of a surrogate pair is no text, and would be refused.
      reason: typeof reason === "string" ? reason.toWellFormed() : reason,
    };
    const { status, json } = await this.#call("POST", "", JSON.stringify(body));
    return { id: json.id, created: status === 201 };
  }

  /**
   * Takes a signal back. That there is none is no error.
   *
   * @param {string} messageId
   * @param {Signal} signal
   */
  async retract(messageId, signal) {
    await this.#call("DELETE", `?${new URLSearchParams({ message_id: messageId, signal })}`);
  }

  /**
   * Every signal that the caller said on a message.
   *
   * @param {string} messageId
   * @returns {Promise<import("../hearback-feedback.js").FeedbackRow[]>}
   */
  async list(messageId) {
    const rows = [];
    const query = new URLSearchParams({ message_id: messageId });
    for (;;) {
      const { json } = await this.#call("GET", `?${query}`);
      rows.push(...json.feedback);
      if (!json.next_cursor) {
        return rows;
      }
      query.set("cursor", json.next_cursor);
    }
  }

  /**
   * @param {string} method
   * @param {string} query
   * @param {string} [body]
   */
  async #call(method, query, body) {
    const headers = await this.#headers(body !== undefined);
    let response;
    let text;
    try {
      response = await fetch(this.#url + query, {
        method,
        headers,
        body,
        cache: "no-store",
        // A redirect to a page for signing in would pass for a success.
        redirect: "error",
        // What was clicked just before the page is left still arrives.
        keepalive: method !== "GET" && (body?.length ?? 0) <= MAX_KEEPALIVE_BODY,
        // Without an end, a call that hangs would hold back everything behind it.
        signal: AbortSignal.timeout(this.#timeout),
      });
      text = await response.text();
    } catch (cause) {
      throw new HearbackError("The server cannot be reached.", { cause });
    }
    const json = parsed(text);
    if (!response.ok) {
      const message = json?.detail ?? json?.title ?? `The server answered ${response.status}.`;
      throw new HearbackError(message, { status: response.status, problem: json });
    }
    if (json === null && response.status !== 204) {
      throw new HearbackError("The answer is not the feedback service's.");
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

  /** @returns {Promise<string | null>} null where the page configured none */
  async #currentToken() {
    const configured = this.#token ?? "";
    if (configured === "") {
      return null;
    }
    const token = typeof configured === "function" ? await this.#asked(configured) : configured;
    if (!token) {
      throw this.#noToken("the token function returned no token");
    }
    if (typeof token !== "string" || !BEARER_TOKEN.test(token)) {
      throw this.#noToken("the token is not one that can be sent: it has to be a string without white space");
    }
    return token;
  }

  /** @param {() => string | null | Promise<string | null>} ask */
  async #asked(ask) {
    const timeout = AbortSignal.timeout(this.#timeout);
    const late = new Promise((_, reject) => {
      timeout.addEventListener("abort", () => reject(timeout.reason), { once: true });
    });
    try {
      // A function that throws at once must not leave the other promise without a handler.
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
   * Nothing was sent, so nothing is uncertain: the same to the user as a token that the server rejects.
   * The developer reads the reason on the console.
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
    : new HearbackError("The answer cannot be read.", { cause: error });
}
