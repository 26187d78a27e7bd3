/** What all elements of a page share: the store, the texts, and the reasons. @module */

import { FeedbackClient } from "./client.js";
import { SIGNAL_REASONS, reasonsWith } from "./reasons.js";
import { FeedbackStore } from "./store.js";

/** All texts of the user interface. */
export const DEFAULT_LABELS = Object.freeze({
  group: "Feedback on this answer",
  helpful: "Helpful",
  notHelpful: "Not helpful",
  reasons: "What was wrong?",
  inaccurate: "Inaccurate",
  unsafe: "Unsafe",
  details: "Details",
  reasonText: "Tell us more (optional)",
  reasonTextFor: "Tell us more about “{reason}” (optional)",
  sendReason: "Send",
  edit: "Edit",
  editor: "Your version of this answer",
  editorHint: "Ctrl+Enter or ⌘+Enter saves, Escape cancels",
  save: "Save",
  cancel: "Cancel",
  edited: "Your version",
  removeEdit: "Remove",
  regenerate: "Regenerate",
  charactersLeft: "{count} characters left",
  charactersOver: "{count} characters too many",
  sent: "Thank you. Your feedback was sent.",
  undo: "Undo",
  saved: "Feedback saved",
  withdrawn: "Feedback withdrawn",
  retry: "Try again",
  dismiss: "Dismiss",
  errorOffline: "Not saved yet: you are offline. It will be sent when you are back online.",
  errorUnavailable: "Not saved: the service cannot be reached right now.",
  errorUnauthorized: "Not saved: please sign in again.",
  errorUnknownMessage: "Not saved: the feedback service has no record of this answer.",
  errorTooLong: "Not saved: the text is too long.",
  errorRefused: "Not saved: the service did not accept it.",
  errorRead: "Your earlier feedback could not be loaded.",
  errorSignedOut: "Please sign in again to give feedback.",
});

/** @typedef {typeof DEFAULT_LABELS} Labels */

/** Shared by all elements. `store` is null until {@link configure} is called. */
export const shared = {
  /** @type {FeedbackStore | null} */
  store: null,
  /** @type {Partial<Labels>} */
  labels: {},
  reasons: SIGNAL_REASONS,
  changes: new EventTarget(),
};

/**
 * Configures all elements of the page, which are disabled until then. Call it again when another user signs in: the
 * state of the previous user is dropped.
 *
 * @param {{
 *   baseUrl?: string,
 *   token?: string | null | (() => string | null | Promise<string | null>),
 *   timeout?: number,
 *   labels?: Partial<Labels>,
 *   reasons?: readonly import("./reasons.js").ReasonOption[],
 * }} [options] `reasons` are added to "Inaccurate" and "Unsafe".
 * @returns {FeedbackStore} the new shared store
 * @throws {TypeError} for an invalid or duplicate reason
 */
export function configure({ labels = {}, reasons = [], ...options } = {}) {
  shared.reasons = reasonsWith(reasons);
  const previous = shared.store;
  shared.store = new FeedbackStore(new FeedbackClient(options));
  shared.labels = labels;
  shared.changes.dispatchEvent(new Event("configured"));
  previous?.close();
  return shared.store;
}
