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
 * @param {Query} query
 * @param {AbortSignal} signal
 */
export function insights(project, query, signal) {
  return get(`/v1/projects/${encodeURIComponent(project)}/insights`, query, signal);
}

/** @param {string} project @param {Query} query @param {AbortSignal} signal */
export function comparison(project, query, signal) {
  return get(`/v1/projects/${encodeURIComponent(project)}/insights/compare`, query, signal);
}

/**
 * Conversations of a period with their feedback, those with the latest feedback first (docs/reference/reports.md).
 *
 * @param {string} project
 * @param {object} body
 * @param {AbortSignal} signal
 */
export function conversationsInPeriod(project, body, signal) {
  return post(`${pathOf(project)}/feedback/conversations-in-period`, body, signal);
}

/**
 * Accepted or rejected turns, the latest first (docs/reference/turns.md).
 *
 * @param {string} project
 * @param {Query} query
 * @param {AbortSignal} signal
 */
export function turnsByStatus(project, query, signal) {
  return get(`${pathOf(project)}/turns`, query, signal);
}

/**
 * What people corrected, that of the latest turn first (docs/reference/implicit-feedback.md).
 *
 * @param {string} project
 * @param {Query} query
 * @param {AbortSignal} signal
 */
export function corrections(project, query, signal) {
  return get(`${pathOf(project)}/corrections`, query, signal);
}

/**
 * The turns of a conversation, in the order of their ids.
 *
 * @param {string} project
 * @param {string} conversation
 * @param {Query} query
 * @param {AbortSignal} signal
 */
export function turnsOf(project, conversation, query, signal) {
  return get(`${pathOf(project, conversation)}/turns`, query, signal);
}

/** @param {string} project @param {string} conversation @param {object} body @param {AbortSignal} signal */
export function turnsWithFeedback(project, conversation, body, signal) {
  return post(`${pathOf(project, conversation)}/turns-with-feedbacks`, body, signal);
}

/** @param {string} project @param {string} conversation @param {string} id @param {AbortSignal} signal */
export function readTurn(project, conversation, id, signal) {
  return get(`${pathOf(project, conversation)}/turns/${encodeURIComponent(id)}`, {}, signal);
}

/**
 * Says what the message after a turn means for its answer (docs/reference/implicit-feedback.md).
 *
 * @param {{ project: string, conversation: string, turn: string }} at
 * @param {object} body
 * @param {AbortSignal} signal
 */
export function correctInference({ project, conversation, turn }, body, signal) {
  const path = `${pathOf(project, conversation)}/turns/${encodeURIComponent(turn)}/inference`;
  return send(path, { method: "PUT", body: JSON.stringify(body) }, signal);
}

/**
 * What was published about feedback, the oldest first (docs/reference/feed.md).
 *
 * @param {Query} query
 * @param {AbortSignal} signal
 */
export function feed(query, signal) {
  return get("/v1/feedback/events", query, signal);
}

/** An event as it was submitted (docs/reference/events.md). @param {string} id @param {AbortSignal} signal */
export function readFeedback(id, signal) {
  return get(`/v1/feedback/${encodeURIComponent(id)}`, {}, signal);
}

/** A user's preferences, of which `resource` is a part (docs/reference/preferences.md). @param {string} user */
function preferencesPath(user, resource = "") {
  return `/v1/preferences/${encodeURIComponent(user)}${resource}`;
}

/** @param {string} user @param {AbortSignal} signal */
export function preferences(user, signal) {
  return get(preferencesPath(user), {}, signal);
}

/** @param {string} user @param {Query} query @param {AbortSignal} signal */
export function resolvedPreferences(user, query, signal) {
  return get(preferencesPath(user, "/resolved"), query, signal);
}

/** @param {string} user @param {Query} query @param {AbortSignal} signal */
export function preferenceHistory(user, query, signal) {
  return get(preferencesPath(user, "/history"), query, signal);
}

/** @param {string} user @param {object} patch with the version that it changes @param {AbortSignal} signal */
export function changePreferences(user, patch, signal) {
  return send(preferencesPath(user), { method: "PUT", body: JSON.stringify(patch) }, signal);
}

/** The latest erasure of a user (docs/reference/erasure.md). @param {string} user @param {AbortSignal} signal */
export function erasure(user, signal) {
  return get(`/v1/users/${encodeURIComponent(user)}/data/erasure`, {}, signal);
}

/** @param {string} user @param {AbortSignal} signal */
export function erase(user, signal) {
  return send(`/v1/users/${encodeURIComponent(user)}/data`, { method: "DELETE" }, signal);
}

/** The queues of the deployment (docs/reference/operations.md). @param {AbortSignal} signal */
export function queues(signal) {
  return get("/v1/operations/queues", {}, signal);
}

/** Moves up to `most` dead letters back, at most a hundred. @param {string} queue @param {number} most @param {AbortSignal} signal */
export function redrive(queue, most, signal) {
  const path = `/v1/operations/dead-letters/${encodeURIComponent(queue)}/redrive?most=${Math.min(most, 100)}`;
  return send(path, { method: "POST" }, signal);
}

/** What the API does not have is `null`. @template T @param {Promise<T>} request @returns {Promise<T | null>} */
export async function ifFound(request) {
  try {
    return await request;
  } catch (error) {
    if (error instanceof ApiError && error.status === 404) {
      return null;
    }
    throw error;
  }
}

/** Of a project or one of its conversations. @param {...string} names */
function pathOf(...names) {
  return ["/conversations", ...[session.caller?.tenant ?? "", ...names].map(encodeURIComponent)].join("/");
}

/** @typedef {Record<string, string | number | undefined>} Query */

/** @param {string} path @param {Query} query @param {AbortSignal} signal */
function get(path, query, signal) {
  const known = Object.entries(query).filter(([, value]) => value !== undefined);
  const search = known.length > 0 ? `?${new URLSearchParams(known.map(([key, value]) => [key, String(value)]))}` : "";
  return send(path + search, {}, signal);
}

/** @param {string} path @param {object} body @param {AbortSignal} signal */
function post(path, body, signal) {
  return send(path, { method: "POST", body: JSON.stringify(body) }, signal);
}

/** @param {string} address @param {RequestInit} request @param {AbortSignal} signal */
async function send(address, request, signal) {
  const { token } = session;
  let response;
  let text;
  try {
    response = await fetch(address, {
      ...request,
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
