/** The custom element. @module */

import { DEFAULT_LABELS, shared } from "./configuration.js";
import { Editor } from "./editor.js";
import { OPPOSITE, PARENT } from "./message.js";
import { assembled, parts } from "./parts.js";
import { ReasonRow } from "./reason-row.js";
import { styleSheet } from "./style.js";

/**
 * @typedef {import("./client.js").HearbackError} HearbackError
 * @typedef {import("./client.js").Signal} Signal
 * @typedef {import("./configuration.js").Labels} Labels
 * @typedef {import("./message.js").Change} Change
 * @typedef {import("./message.js").SignalState} SignalState
 * @typedef {import("./store.js").FeedbackStore} FeedbackStore
 * @typedef {ReturnType<FeedbackStore["snapshot"]>} Snapshot
 */

/** The message for an error. @param {HearbackError} error @param {Labels} labels */
function explanation(error, labels) {
  switch (error.status) {
    case 0:
      return navigator.onLine ? labels.errorUnavailable : labels.errorOffline;
    case 401:
      return labels.errorUnauthorized;
    case 404:
      return labels.errorUnknownMessage;
    case 413:
      return labels.errorTooLong;
    default:
      return error.retryable ? labels.errorUnavailable : labels.errorRefused;
  }
}

/** What is withdrawn with a signal: itself and its children. @param {Snapshot} state @param {Signal} signal */
function withdrawnWith({ signals }, signal) {
  const all = /** @type {[Signal, SignalState][]} */ (Object.entries(signals));
  return all
    .filter(([name, { active }]) => active && (name === signal || PARENT[name] === signal))
    .map(([name, { reason }]) => ({ signal: name, reason }));
}

/** Allows importing this module without a DOM. */
const ElementBase = /** @type {typeof HTMLElement} */ (globalThis.HTMLElement ?? class {});

/**
 * `<hearback-feedback message-id chat-id trace-id>`: an answer with controls for feedback below it.
 *
 * The answer is the content of the element or, with `for`, the element with that id.
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
  #editor = new Editor(this.#ui, {
    snapshot: () => this.#snapshot(),
    answerText: () => this.answerText,
    save: (text) => this.#submit("edit", true, { reason: text }),
    announce: (text) => this.#announce(text),
    render: () => this.#render(),
  });
  #reasonRow = new ReasonRow(this.#ui, {
    snapshot: () => this.#snapshot(),
    reasons: () => shared.reasons,
    submit: (signal, active, options) => this.#submit(signal, active, options),
    confirm: () => this.#notify(this.labels.sent),
    render: () => this.#render(),
  });
  /** What the last action withdrew and undo restores. @type {{ signal: Signal, reason: string | null }[]} */
  #withdrawn = [];
  /** Whether the last action on this element submitted feedback (or withdrew it). @type {boolean | null} */
  #submitted = null;
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

  /** Applies a property that the page set before the element was defined. @param {string} name */
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
      this.#reset();
      this.#attach();
    } else {
      this.#render();
    }
  }

  /** The id of the answer's message. */
  get messageId() {
    return this.getAttribute("message-id") ?? "";
  }

  set messageId(id) {
    this.setAttribute("message-id", id);
  }

  /** The text of the answer to edit, such as its Markdown. By default the visible text. @returns {string} */
  get answerText() {
    return this.#answerText ?? this.#answerElement().innerText.trim();
  }

  set answerText(text) {
    this.#answerText = text ?? null;
  }

  /** Texts that override those of {@link configure} for this element. @returns {Labels} */
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

  /** Subscribes to the message in the store of the page. */
  #attach() {
    this.#detach();
    if (shared.store && this.messageId) {
      this.#store = shared.store;
      this.#unsubscribe = this.#store.subscribe(this.messageId, {
        update: () => this.#render(),
        change: (change) => this.#onChange(change),
        error: (signal, error) => this.#onError(signal, error),
      });
    }
    this.#render();
  }

  #detach() {
    this.#unsubscribe?.();
    this.#unsubscribe = null;
    this.#store = null;
  }

  /** Discards the state of another message: a list may reuse its elements. */
  #reset() {
    this.#editor.reset();
    this.#reasonRow.reset();
    this.#answerText = null;
    this.#withdrawn = [];
    this.#submitted = null;
    this.#announce("");
  }

  #listen() {
    const ui = this.#ui;
    ui.up.addEventListener("click", () => this.#toggle("helpful"));
    ui.down.addEventListener("click", () => this.#toggle("not_helpful"));
    ui.removeEdit.addEventListener("click", () => this.#submit("edit", false));
    ui.regenerate.addEventListener("click", () => this.#regenerate());
    ui.undo.addEventListener("click", () => this.#undo());
    ui.retry.addEventListener("click", () => this.#store?.retry(this.messageId));
    ui.dismiss.addEventListener("click", () => this.#store?.dismiss(this.messageId));
  }

  #snapshot() {
    return this.#store?.snapshot(this.messageId);
  }

  /** @param {Signal} signal @param {boolean} active @param {{ reason?: string | null }} [options] */
  #submit(signal, active, options = {}) {
    const state = this.#snapshot();
    if (!this.#store || !state) {
      return;
    }
    this.#announce("");
    this.#submitted = active;
    const removed = active ? OPPOSITE[signal] : signal;
    const withdrawn = removed ? withdrawnWith(state, removed) : [];
    // A single thumb is restored with a click; offer undo for a text or several signals.
    const isCostly = withdrawn.length > 1 || withdrawn.some(({ reason }) => reason !== null);
    this.#withdrawn = isCostly ? withdrawn : [];
    this.#store.set(this.messageId, signal, active, { ...options, ...this.#anchors() });
  }

  /** Restores what the last action withdrew. */
  #undo() {
    const withdrawn = this.#withdrawn;
    this.#withdrawn = [];
    this.#submitted = true;
    this.#announce("");
    for (const { signal, reason } of withdrawn) {
      this.#store?.set(this.messageId, signal, true, { reason, ...this.#anchors() });
    }
    const control = withdrawn.some(({ signal }) => signal === "edit") ? this.#ui.edit : this.#ui.down;
    control.focus();
  }

  #anchors() {
    return { chatId: this.getAttribute("chat-id"), traceId: this.getAttribute("trace-id") };
  }

  /** Has screen readers read a text, without showing it. @param {string} text */
  #announce(text) {
    if (this.#ui.status.textContent !== text) {
      this.#ui.status.textContent = text;
    }
    this.#ui.notice.classList.remove("shown");
    this.#ui.undo.hidden = true;
  }

  /** Shows a text, and has screen readers read it. @param {string} text */
  #notify(text) {
    this.#announce(text);
    this.#ui.notice.classList.add("shown");
    this.#ui.undo.hidden = this.#withdrawn.length === 0;
  }

  /** @param {Signal} signal */
  #toggle(signal) {
    const shown = this.#snapshot()?.signals[signal];
    if (shown) {
      this.#reasonRow.thumb(signal === "not_helpful" && !shown.active);
      this.#submit(signal, !shown.active);
    }
  }

  #regenerate() {
    // Read before the event: its handler may assign the next message to the element.
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
      if (messageId === this.messageId) {
        this.#submitted = true;
        this.#withdrawn = [];
      }
      store?.set(messageId, "regenerate", true, anchors);
    }
  }

  /** @param {Change} change */
  #onChange(change) {
    // An action may change several signals, and another element of this message reports its own actions.
    if (change.source === "user" && this.#submitted !== null) {
      const text = this.#submitted ? this.labels.saved : this.labels.withdrawn;
      if (this.#withdrawn.length > 0) {
        this.#notify(text);
      } else {
        this.#announce(text);
      }
    }
    this.#emit("hearback-change", { messageId: this.messageId, ...change });
  }

  /** @param {Signal | null} signal @param {HearbackError} error */
  #onError(signal, error) {
    this.#emit("hearback-error", { messageId: this.messageId, signal, error });
  }

  /** @param {string} type @param {object} detail */
  #emit(type, detail) {
    this.dispatchEvent(new CustomEvent(type, { bubbles: true, composed: true, detail }));
  }

  #render() {
    const focused = this.#root.activeElement;
    const { labels } = this;
    const state = this.#snapshot();
    this.#renderPending(state);
    this.#renderLabels(labels);
    this.#renderToolbar(state);
    this.#reasonRow.render(state, labels);
    this.#editor.render(state, labels);
    this.#renderError(state, labels);
    this.#keepFocus(focused);
  }

  /** For the page's own style: `hearback-feedback:state(pending)`. @param {Snapshot | undefined} state */
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
    for (const [node, label] of /** @type {[HTMLElement, string][]} */ ([
      [ui.up, labels.helpful],
      [ui.down, labels.notHelpful],
      [ui.dismiss, labels.dismiss],
    ])) {
      node.setAttribute("aria-label", label);
      node.title = label;
    }
    ui.detailsText.textContent = labels.details;
    ui.editText.textContent = labels.edit;
    ui.regenerateText.textContent = labels.regenerate;
    ui.sendReason.textContent = labels.sendReason;
    ui.editedTitle.textContent = labels.edited;
    ui.removeEdit.textContent = labels.removeEdit;
    ui.editorLabel.textContent = labels.editor;
    ui.hint.textContent = labels.editorHint;
    ui.cancel.textContent = labels.cancel;
    ui.save.textContent = labels.save;
    ui.undo.textContent = labels.undo;
    ui.retry.textContent = labels.retry;
  }

  /** @param {Snapshot | undefined} state */
  #renderToolbar(state) {
    const ui = this.#ui;
    for (const control of [ui.up, ui.down, ui.edit, ui.regenerate]) {
      control.disabled = !state;
    }
    ui.up.setAttribute("aria-pressed", String(state?.signals.helpful.active ?? false));
    ui.down.setAttribute("aria-pressed", String(state?.signals.not_helpful.active ?? false));
    ui.regenerate.hidden = !this.hasAttribute("regenerate");
  }

  /** @param {Snapshot | undefined} state @param {Labels} labels */
  #renderError(state, labels) {
    const ui = this.#ui;
    let text = "";
    if (state?.error) {
      text = explanation(state.error, labels);
    } else if (state?.readError) {
      text = state.readError.status === 401 ? labels.errorSignedOut : labels.errorRead;
    }
    if (ui.errorText.textContent !== text) {
      ui.errorText.textContent = text;
    }
    ui.error.classList.toggle("shown", text !== "");
    ui.retry.hidden = !(state?.error ?? state?.readError)?.retryable;
    ui.dismiss.hidden = text === "";
  }

  /** If the focused control was hidden, moves the focus to the control that shows it again. @param {Element | null} focused */
  #keepFocus(focused) {
    const ui = this.#ui;
    if (!focused || !this.isConnected || /** @type {HTMLElement} */ (focused).checkVisibility()) {
      return;
    }
    const successors = /** @type {[HTMLElement, HTMLElement][]} */ ([
      [ui.details, ui.detailsToggle],
      [ui.detailsToggle, ui.down],
      [ui.edited, ui.edit],
      [ui.error, ui.up],
      [ui.notice, ui.up],
    ]);
    const successor = successors.find(([region, to]) => region.contains(focused) && to.checkVisibility());
    if (successor) {
      successor[1].focus();
    } else {
      ui.down.focus();
    }
  }
}
