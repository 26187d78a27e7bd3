/** The custom element. @module */

import { MAX_REASON } from "./client.js";
import { DEFAULT_LABELS, shared } from "./configuration.js";
import { assembled, parts } from "./parts.js";
import { styleSheet } from "./style.js";

/**
 * @typedef {import("./client.js").HearbackError} HearbackError
 * @typedef {import("./client.js").Signal} Signal
 * @typedef {import("./configuration.js").Labels} Labels
 * @typedef {import("./message.js").Change} Change
 * @typedef {import("./store.js").FeedbackStore} FeedbackStore
 */

/** From how many code points before the limit on the rest is told. */
const COUNT_FROM = 400;

/** @param {string} text */
function codePoints(text) {
  let count = 0;
  for (const _ of text) {
    count += 1;
  }
  return count;
}

/** @param {string} label @param {number} count */
function counted(label, count) {
  return label.replace("{count}", String(count));
}

/** @param {HearbackError} error @param {Labels} labels */
function explanation(error, labels) {
  switch (error.status) {
    case 0:
      return labels.errorOffline;
    case 401:
      return labels.errorUnauthorized;
    case 404:
      return labels.errorUnknownMessage;
    case 413:
      return labels.errorTooLong;
    default:
      return error.uncertain || error.status === 429 ? labels.errorUnavailable : labels.errorRefused;
  }
}

/** Where there is no DOM, importing this module is harmless. */
const ElementBase = /** @type {typeof HTMLElement} */ (globalThis.HTMLElement ?? class {});

/**
 * `<hearback-feedback message-id chat-id trace-id>`: the answer, and under it what may be said of it.
 *
 * The answer is what the element holds, or, with `for`, the element of that id.
 */
export class HearbackFeedback extends ElementBase {
  static observedAttributes = ["message-id", "regenerate"];

  #ui = parts();
  #root = this.attachShadow({ mode: "open" });
  #internals = this.attachInternals();
  /** @type {FeedbackStore | null} */
  #store = null;
  /** @type {(() => void) | null} */
  #unsubscribe = null;
  /** @type {AbortController | null} */
  #connected = null;
  #editing = false;
  /** What the editor was opened with: an answer that was not changed is no edit. */
  #opened = "";
  #reasonTyped = false;
  /** @type {string | null} */
  #answerText = null;
  /** @type {Partial<Labels>} */
  #labels = {};

  constructor() {
    super();
    this.#root.adoptedStyleSheets = [styleSheet()];
    this.#root.append(...assembled(this.#ui));
    this.#listen();
  }

  connectedCallback() {
    for (const name of ["messageId", "answerText", "labels"]) {
      this.#upgrade(name);
    }
    this.#connected = new AbortController();
    const { signal } = this.#connected;
    shared.changes.addEventListener("configured", () => this.#attach(), { signal });
    this.#attach();
  }

  disconnectedCallback() {
    this.#connected?.abort();
    this.#connected = null;
    this.#detach();
  }

  /** Takes over a property that the page set before the element was defined. @param {string} name */
  #upgrade(name) {
    if (Object.hasOwn(this, name)) {
      const self = /** @type {any} */ (this);
      const value = self[name];
      delete self[name];
      self[name] = value;
    }
  }

  /** @param {string} name @param {string | null} before @param {string | null} after */
  attributeChangedCallback(name, before, after) {
    if (!this.#connected || before === after) {
      return;
    }
    if (name === "message-id") {
      this.#startAfresh();
      this.#attach();
    } else {
      this.#render();
    }
  }

  /** The message that the feedback is on. */
  get messageId() {
    return this.getAttribute("message-id") ?? "";
  }

  set messageId(id) {
    this.setAttribute("message-id", id);
  }

  /** The answer as the user is to edit it, say its Markdown. The text that is shown, if not set. @returns {string} */
  get answerText() {
    return this.#answerText ?? this.#answerElement().innerText.trim();
  }

  set answerText(text) {
    this.#answerText = text ?? null;
  }

  /** Texts of this element that differ from those given to {@link configure}. @returns {Labels} */
  get labels() {
    return { ...DEFAULT_LABELS, ...shared.labels, ...this.#labels };
  }

  set labels(labels) {
    this.#labels = labels ?? {};
    this.#render();
  }

  /** @returns {HTMLElement} */
  #answerElement() {
    const id = this.getAttribute("for");
    const root = /** @type {Document | ShadowRoot} */ (this.getRootNode());
    return (id && root.getElementById?.(id)) || this;
  }

  /** Follows the message of the attribute, in the store of the page. */
  #attach() {
    this.#detach();
    if (shared.store && this.messageId) {
      this.#store = shared.store;
      this.#unsubscribe = this.#store.subscribe(this.messageId, {
        update: () => this.#render(),
        change: (change) => this.#tellChange(change),
        error: (signal, error) => this.#tellError(signal, error),
      });
    }
    this.#render();
  }

  #detach() {
    this.#unsubscribe?.();
    this.#unsubscribe = null;
    this.#store = null;
  }

  /** Forgets what was begun on another message: a list reuses its elements. */
  #startAfresh() {
    this.#editing = false;
    this.#reasonTyped = false;
    this.#answerText = null;
    this.#announce("");
  }

  #listen() {
    const ui = this.#ui;
    ui.up.addEventListener("click", () => this.#toggle("helpful"));
    ui.down.addEventListener("click", () => this.#toggle("not_helpful"));
    ui.inaccurate.addEventListener("click", () => this.#toggle("inaccurate"));
    ui.unsafe.addEventListener("click", () => this.#toggle("unsafe"));
    ui.reasonInput.addEventListener("input", () => {
      this.#reasonTyped = true;
      this.#render();
    });
    ui.reason.addEventListener("submit", (event) => {
      event.preventDefault();
      this.#sendReason();
    });
    ui.edit.addEventListener("click", () => this.#openEditor());
    ui.textarea.addEventListener("input", () => this.#render());
    ui.editor.addEventListener("keydown", (event) => this.#editorKey(event));
    ui.editor.addEventListener("submit", (event) => {
      event.preventDefault();
      this.#saveEdit();
    });
    ui.cancel.addEventListener("click", () => this.#closeEditor());
    ui.removeEdit.addEventListener("click", () => this.#say("edit", false));
    ui.regenerate.addEventListener("click", () => this.#regenerate());
    ui.retry.addEventListener("click", () => this.#store?.retry(this.messageId));
  }

  /** @param {Signal} signal @param {boolean} active @param {{ reason?: string | null }} [options] */
  #say(signal, active, options = {}) {
    this.#announce("");
    this.#store?.set(this.messageId, signal, active, { ...options, ...this.#anchors() });
  }

  #anchors() {
    return { chatId: this.getAttribute("chat-id"), traceId: this.getAttribute("trace-id") };
  }

  /** Has a text read out, once. @param {string} text */
  #announce(text) {
    if (this.#ui.status.textContent !== text) {
      this.#ui.status.textContent = text;
    }
  }

  /** @param {Signal} signal */
  #toggle(signal) {
    const shown = this.#store?.snapshot(this.messageId).signals[signal];
    if (shown) {
      this.#say(signal, !shown.active);
    }
  }

  #sendReason() {
    if (this.#reasonTyped) {
      this.#reasonTyped = false;
      this.#say("not_helpful", true, { reason: this.#ui.reasonInput.value.trim() || null });
    }
  }

  #openEditor() {
    const state = this.#store?.snapshot(this.messageId);
    if (!state) {
      return;
    }
    const { textarea } = this.#ui;
    this.#opened = state.signals.edit.reason ?? this.answerText;
    // What could not be saved is not lost.
    textarea.value = state.failedReasons.edit ?? this.#opened;
    this.#editing = true;
    this.#render();
    textarea.focus();
  }

  #closeEditor() {
    this.#editing = false;
    this.#render();
    this.#ui.edit.focus();
  }

  /** @param {KeyboardEvent} event */
  #editorKey(event) {
    if (event.isComposing) {
      return;
    }
    if (event.key === "Escape") {
      // A dialog around the element stays open.
      event.stopPropagation();
      event.preventDefault();
      this.#closeEditor();
    } else if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      this.#saveEdit();
    }
  }

  #saveEdit() {
    const text = this.#ui.textarea.value;
    if (!this.#maySave(text)) {
      return;
    }
    if (text !== this.#opened) {
      this.#say("edit", true, { reason: text });
    }
    this.#closeEditor();
  }

  /** @param {string} text */
  #maySave(text) {
    return text.trim() !== "" && codePoints(text) <= MAX_REASON;
  }

  #regenerate() {
    // Taken now: the page may give the element its next message while it handles the event.
    const { messageId } = this;
    const store = this.#store;
    const anchors = this.#anchors();
    const event = new CustomEvent("hearback-regenerate", {
      bubbles: true,
      composed: true,
      cancelable: true,
      detail: { messageId },
    });
    if (this.dispatchEvent(event)) {
      store?.set(messageId, "regenerate", true, anchors);
    }
  }

  /** @param {Change} change */
  #tellChange(change) {
    if (change.source === "user") {
      this.#announce(change.active ? this.labels.saved : this.labels.withdrawn);
    }
    this.#emit("hearback-change", { messageId: this.messageId, ...change });
  }

  /** @param {Signal | null} signal @param {HearbackError} error */
  #tellError(signal, error) {
    this.#emit("hearback-error", { messageId: this.messageId, signal, error });
  }

  /** @param {string} type @param {object} detail */
  #emit(type, detail) {
    this.dispatchEvent(new CustomEvent(type, { bubbles: true, composed: true, detail }));
  }

  #render() {
    const focused = this.#root.activeElement;
    const { labels } = this;
    const state = this.#store?.snapshot(this.messageId);
    this.#renderPending(state);
    this.#renderLabels(labels);
    this.#renderToolbar(state);
    this.#renderDetails(state);
    this.#renderEdit(state, labels);
    this.#renderError(state, labels);
    this.#keepFocus(focused);
  }

  /** For the page's own style: `hearback-feedback:state(pending)`. @param {ReturnType<FeedbackStore["snapshot"]> | undefined} state */
  #renderPending(state) {
    if (state?.pending || state?.reading) {
      this.#internals.states.add("pending");
    } else {
      this.#internals.states.delete("pending");
    }
  }

  /** @param {Labels} labels */
  #renderLabels(labels) {
    const ui = this.#ui;
    ui.group.setAttribute("aria-label", labels.group);
    ui.details.setAttribute("aria-label", labels.reasons);
    for (const [node, label] of /** @type {[Element, string][]} */ ([
      [ui.up, labels.helpful],
      [ui.down, labels.notHelpful],
      [ui.reasonInput, labels.reasonText],
    ])) {
      node.setAttribute("aria-label", label);
    }
    ui.up.title = labels.helpful;
    ui.down.title = labels.notHelpful;
    ui.reasonInput.placeholder = labels.reasonText;
    ui.editText.textContent = labels.edit;
    ui.regenerateText.textContent = labels.regenerate;
    ui.inaccurate.textContent = labels.inaccurate;
    ui.unsafe.textContent = labels.unsafe;
    ui.sendReason.textContent = labels.sendReason;
    ui.editedTitle.textContent = labels.edited;
    ui.removeEdit.textContent = labels.removeEdit;
    ui.editorLabel.textContent = labels.editor;
    ui.hint.textContent = labels.editorHint;
    ui.cancel.textContent = labels.cancel;
    ui.save.textContent = labels.save;
    ui.retry.textContent = labels.retry;
  }

  /** @param {ReturnType<FeedbackStore["snapshot"]> | undefined} state */
  #renderToolbar(state) {
    const ui = this.#ui;
    for (const control of [ui.up, ui.down, ui.edit, ui.regenerate]) {
      control.disabled = !state;
    }
    ui.up.setAttribute("aria-pressed", String(state?.signals.helpful.active ?? false));
    ui.down.setAttribute("aria-pressed", String(state?.signals.not_helpful.active ?? false));
    ui.regenerate.hidden = !this.hasAttribute("regenerate");
  }

  /** @param {ReturnType<FeedbackStore["snapshot"]> | undefined} state */
  #renderDetails(state) {
    const ui = this.#ui;
    const signals = state?.signals;
    const inaccurate = signals?.inaccurate.active ?? false;
    const unsafe = signals?.unsafe.active ?? false;
    const down = signals?.not_helpful.active ?? false;
    ui.details.hidden = !(down || inaccurate || unsafe);
    ui.reason.hidden = !down;
    ui.inaccurate.setAttribute("aria-pressed", String(inaccurate));
    ui.unsafe.setAttribute("aria-pressed", String(unsafe));
    if (!this.#reasonTyped) {
      const reason = state?.failedReasons.not_helpful ?? signals?.not_helpful.reason;
      ui.reasonInput.value = reason ?? "";
    }
    ui.sendReason.setAttribute("aria-disabled", String(!this.#reasonTyped));
  }

  /** @param {ReturnType<FeedbackStore["snapshot"]> | undefined} state @param {Labels} labels */
  #renderEdit(state, labels) {
    const ui = this.#ui;
    const edit = state?.signals.edit;
    ui.slot.hidden = this.#editing;
    ui.editor.hidden = !this.#editing;
    ui.edited.hidden = this.#editing || !edit?.active;
    ui.editedText.textContent = edit?.reason ?? "";
    ui.edit.hidden = this.#editing;
    if (this.#editing) {
      this.#renderCount(labels);
    }
  }

  /** @param {Labels} labels */
  #renderCount(labels) {
    const ui = this.#ui;
    const rest = MAX_REASON - codePoints(ui.textarea.value);
    const over = rest < 0;
    ui.textarea.setAttribute("aria-invalid", String(over));
    ui.count.classList.toggle("over", over);
    ui.count.hidden = rest > COUNT_FROM;
    const label = over ? labels.charactersOver : labels.charactersLeft;
    ui.count.textContent = counted(label, Math.abs(rest));
    // Each keystroke is too much to be read out; that the limit is passed is not.
    this.#announce(over ? labels.errorTooLong : "");
    ui.save.setAttribute("aria-disabled", String(!this.#maySave(ui.textarea.value)));
  }

  /** @param {ReturnType<FeedbackStore["snapshot"]> | undefined} state @param {Labels} labels */
  #renderError(state, labels) {
    const ui = this.#ui;
    let text = "";
    if (state?.error) {
      text = explanation(state.error, labels);
    } else if (state?.readError) {
      const signedOut = state.readError.status === 401;
      text = signedOut ? labels.errorUnauthorized : labels.errorRead;
    }
    if (ui.errorText.textContent !== text) {
      ui.errorText.textContent = text;
    }
    ui.error.classList.toggle("shown", text !== "");
    ui.retry.hidden = text === "";
  }

  /** What had the focus may have gone; the focus goes to what brings it back. @param {Element | null} focused */
  #keepFocus(focused) {
    const ui = this.#ui;
    if (!focused || !this.isConnected || /** @type {HTMLElement} */ (focused).checkVisibility()) {
      return;
    }
    const heirs = /** @type {[HTMLElement, HTMLElement][]} */ ([
      [ui.details, ui.down],
      [ui.edited, ui.edit],
      [ui.error, ui.up],
    ]);
    const heir = heirs.find(([region]) => region.contains(focused));
    heir?.[1].focus();
  }
}
