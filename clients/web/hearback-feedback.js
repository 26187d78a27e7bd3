/**
 * What a user makes of an answer, said under the answer: thumbs, reasons, an edit, a wish for another one.
 *
 * Three layers, each usable without those above it: `src/client.js` speaks HTTP, `src/store.js` keeps
 * what the user wishes and what the server has confirmed apart, and `src/element.js` is the custom
 * element `<hearback-feedback>`.
 *
 * @module
 */

import { HearbackFeedback } from "./src/element.js";

export { FeedbackClient, HearbackError, MAX_REASON, SIGNALS } from "./src/client.js";
export { DEFAULT_LABELS, configure } from "./src/configuration.js";
export { FeedbackStore } from "./src/store.js";
export { HearbackFeedback };

globalThis.customElements?.define("hearback-feedback", HearbackFeedback);
