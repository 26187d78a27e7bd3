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

/** Why something was not saved. @param {HearbackError} error @param {Labels} labels */
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

/** What goes when a signal goes: itself, and what hangs on it. @param {Snapshot} state @param {Signal} signal */
function withdrawnWith({ signals }, signal) {
  const all = /** @type {[Signal, SignalState][]} */ (Object.entries(signals));
  return all
    .filter(([name, { active }]) => active && (name === signal || PARENT[name] === signal))
    .map(([name, { reason }]) => ({ signal: name, reason }));
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
  #editor = new Editor(this.#ui, {
    snapshot: () => this.#snapshot(),
    answerText: () => this.answerText,
    save: (text) => this.#say("edit", true, { reason: text }),
    announce: (text) => this.#announce(text),
    render: () => this.#render(),
  });
  #reasonRow = new ReasonRow(this.#ui, {
    snapshot: () => this.#snapshot(),
    reasons: () => shared.reasons,
    say: (signal, active, options) => this.#say(signal, active, options),
    confirm: () => this.#notify(this.labels.sent),
    render: () => this.#render(),
  });
  /** What the last action took away, and can be had back. @type {{ signal: Signal, reason: string | null }[]} */
  #lost = [];
  /** Whether the last action on this element gave feedback or withdrew it. @type {boolean | null} */
  #gave = null;
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
    this.#editor.reset();
    this.#reasonRow.reset();
    this.#answerText = null;
    this.#lost = [];
    this.#gave = null;
    this.#announce("");
  }

  #listen() {
    const ui = this.#ui;
    ui.up.addEventListener("click", () => this.#toggle("helpful"));
    ui.down.addEventListener("click", () => this.#toggle("not_helpful"));
    ui.removeEdit.addEventListener("click", () => this.#say("edit", false));
    ui.regenerate.addEventListener("click", () => this.#regenerate());
    ui.undo.addEventListener("click", () => this.#undo());
    ui.retry.addEventListener("click", () => this.#store?.retry(this.messageId));
    ui.dismiss.addEventListener("click", () => this.#store?.dismiss(this.messageId));
  }

  #snapshot() {
    return this.#store?.snapshot(this.messageId);
  }

  /** @param {Signal} signal @param {boolean} active @param {{ reason?: string | null }} [options] */
  #say(signal, active, options = {}) {
    const state = this.#snapshot();
    if (!this.#store || !state) {
      return;
    }
    this.#announce("");
    this.#gave = active;
    const goes = active ? OPPOSITE[signal] : signal;
    const lost = goes ? withdrawnWith(state, goes) : [];
    // One click gives a thumb back; a text, or several signals at once, would have to be given anew.
    this.#lost = lost.length > 1 || lost.some(({ reason }) => reason !== null) ? lost : [];
    this.#store.set(this.messageId, signal, active, { ...options, ...this.#anchors() });
  }

  /** Gives back what the last action took away. */
  #undo() {
    const lost = this.#lost;
    this.#lost = [];
    this.#gave = true;
    this.#announce("");
    for (const { signal, reason } of lost) {
      this.#store?.set(this.messageId, signal, true, { reason, ...this.#anchors() });
    }
    const control = lost.some(({ signal }) => signal === "edit") ? this.#ui.edit : this.#ui.down;
    control.focus();
  }

  #anchors() {
    return { chatId: this.getAttribute("chat-id"), traceId: this.getAttribute("trace-id") };
  }

  /** Has a text read out, once, and not shown. @param {string} text */
  #announce(text) {
    if (this.#ui.status.textContent !== text) {
      this.#ui.status.textContent = text;
    }
    this.#ui.notice.classList.remove("shown");
    this.#ui.undo.hidden = true;
  }

  /** Shows a text and has it read out. @param {string} text */
  #notify(text) {
    this.#announce(text);
    this.#ui.notice.classList.add("shown");
    this.#ui.undo.hidden = this.#lost.length === 0;
  }

  /** @param {Signal} signal */
  #toggle(signal) {
    const shown = this.#snapshot()?.signals[signal];
    if (shown) {
      this.#reasonRow.thumb(signal === "not_helpful" && !shown.active);
      this.#say(signal, !shown.active);
    }
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
      if (messageId === this.messageId) {
        this.#gave = true;
        this.#lost = [];
      }
      store?.set(messageId, "regenerate", true, anchors);
    }
  }

  /** @param {Change} change */
  #tellChange(change) {
    // An action may change several signals, and another element of this message tells of its own.
    if (change.source === "user" && this.#gave !== null) {
      const text = this.#gave ? this.labels.saved : this.labels.withdrawn;
      if (this.#lost.length > 0) {
        this.#notify(text);
      } else {
        this.#announce(text);
      }
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

  /** What had the focus may have gone; the focus goes to what brings it back. @param {Element | null} focused */
  #keepFocus(focused) {
    const ui = this.#ui;
    if (!focused || !this.isConnected || /** @type {HTMLElement} */ (focused).checkVisibility()) {
      return;
    }
    const heirs = /** @type {[HTMLElement, HTMLElement][]} */ ([
      [ui.details, ui.detailsToggle],
      [ui.detailsToggle, ui.down],
      [ui.edited, ui.edit],
      [ui.error, ui.up],
      [ui.notice, ui.up],
    ]);
    const heir = heirs.find(([region, to]) => region.contains(focused) && to.checkVisibility());
    if (heir) {
      heir[1].focus();
    } else {
      ui.down.focus();
    }
  }
}
