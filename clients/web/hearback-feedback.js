/**
 * Collects a user's feedback under an answer: thumbs, reasons, edits, requests for another answer.
 *
 * There are three layers, each usable without those above it: `src/client.js` calls the HTTP API, `src/store.js` holds
 * the optimistic state, and `src/element.js` is the custom element `<hearback-feedback>`.
 *
 * @module
 */

import { HearbackFeedback } from "./src/element.js";

export { FeedbackClient, HearbackError, MAX_REASON, SIGNALS } from "./src/client.js";
export { DEFAULT_LABELS, configure } from "./src/configuration.js";
export { FeedbackStore } from "./src/store.js";
export { HearbackFeedback };

globalThis.customElements?.define("hearback-feedback", HearbackFeedback);
