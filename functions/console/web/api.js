/** Requests to the API. @module */

import { session } from "./session.js";

/** A stalled connection must not leave a view loading for ever. */
const TIMEOUT_MS = 40_000;

/** A failed request. */
export class ApiError extends Error {
  /** @param {string} message @param {number} status 0 without a response @param {string[]} [details] */
  constructor(message, status, details = []) {
    super(message);
    this.status = status;
    this.details = details;
  }
}

/**
 * Counts of a project (docs/reference/insights.md).
 *
 * @param {string} project
 * @param {Record<string, string | number | undefined>} query
 * @param {AbortSignal} signal
 */
export function insights(project, query, signal) {
  return get(`/v1/projects/${encodeURIComponent(project)}/insights`, query, signal);
}

/** @param {string} project @param {Record<string, string | number | undefined>} query @param {AbortSignal} signal */
export function comparison(project, query, signal) {
  return get(`/v1/projects/${encodeURIComponent(project)}/insights/compare`, query, signal);
}

/** @param {string} path @param {Record<string, string | number | undefined>} query @param {AbortSignal} signal */
async function get(path, query, signal) {
  const { token } = session;
  const known = Object.entries(query).filter(([, value]) => value !== undefined);
  const search = new URLSearchParams(known.map(([key, value]) => [key, String(value)]));
  let response;
  let text;
  try {
    response = await fetch(`${path}?${search}`, {
      headers: { Accept: "application/json, application/problem+json", Authorization: `Bearer ${token}` },
      cache: "no-store",
      // A redirect to a sign-in page would look like a success.
      redirect: "error",
      signal: AbortSignal.any([signal, AbortSignal.timeout(TIMEOUT_MS)]),
    });
    text = await response.text();
  } catch (error) {
    signal.throwIfAborted();
    const isLate = error instanceof DOMException && error.name === "TimeoutError";
    throw new ApiError(isLate ? "The server did not respond in time." : "The server cannot be reached.", 0);
  }
  const body = parsed(text);
  if (response.ok && body !== null) {
    return body;
  }
  // The token may be another one meanwhile.
  if (response.status === 401 && token === session.token) {
    session.signOut("The server did not accept the token. It may have expired, or be for another server.");
  }
  throw problem(response.status, body);
}

/** @param {string} text */
function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

/** The error of a problem document (docs/reference/errors.md). @param {number} status @param {any} body */
function problem(status, body) {
  const detail = body?.detail ?? body?.message ?? `The server responded with status ${status}.`;
  const details = (body?.errors ?? []).map((/** @type {any} */ each) => `${each.pointer.slice(1)}: ${each.detail}`);
  return new ApiError(sentence(detail), status, details);
}

/** @param {string} text */
function sentence(text) {
  const end = /[.!?]$/.test(text) ? "" : ".";
  return text.charAt(0).toUpperCase() + text.slice(1) + end;
}
