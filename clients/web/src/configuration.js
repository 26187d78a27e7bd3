/** What the elements of a page share: the store, and the texts. @module */

import { FeedbackClient } from "./client.js";
import { FeedbackStore } from "./store.js";

/** Every text that a user sees or hears. */
export const DEFAULT_LABELS = Object.freeze({
  group: "Feedback on this answer",
  helpful: "Helpful",
  notHelpful: "Not helpful",
  reasons: "What was wrong?",
  inaccurate: "Inaccurate",
  unsafe: "Unsafe",
  reasonText: "Tell us more (optional)",
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
  saved: "Feedback saved",
  withdrawn: "Feedback withdrawn",
  retry: "Try again",
  errorOffline: "Not saved: there is no connection.",
  errorUnavailable: "Not saved: the service is not available right now.",
  errorUnauthorized: "Not saved: please sign in again.",
  errorUnknownMessage: "Not saved: the service does not know this answer.",
  errorTooLong: "Not saved: the text is too long.",
  errorRefused: "Not saved: the service refused it.",
  errorRead: "Your feedback could not be loaded.",
});

/** @typedef {typeof DEFAULT_LABELS} Labels */

/** What every element on the page uses. Null until {@link configure} is called. */
export const shared = {
  /** @type {FeedbackStore | null} */
  store: null,
  /** @type {Partial<Labels>} */
  labels: {},
  changes: new EventTarget(),
};

/**
 * Says where the server is and who calls. Until then every element is switched off. To be called
 * again when another user signs in: what was known of the one before is forgotten.
 *
 * @param {{
 *   baseUrl?: string,
 *   token?: string | null | (() => string | null | Promise<string | null>),
 *   timeout?: number,
 *   labels?: Partial<Labels>,
 * }} [options]
 * @returns {FeedbackStore} the store that the elements share from now on
 */
export function configure({ labels = {}, ...options } = {}) {
  const before = shared.store;
  shared.store = new FeedbackStore(new FeedbackClient(options));
  shared.labels = labels;
  shared.changes.dispatchEvent(new Event("configured"));
  before?.close();
  return shared.store;
}
