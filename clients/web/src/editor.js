/** The editor in which users write their own version of an answer. @module */

import { MAX_REASON } from "./client.js";

/**
 * @typedef {import("./configuration.js").Labels} Labels
 * @typedef {ReturnType<import("./store.js").FeedbackStore["snapshot"]>} Snapshot
 * @typedef {object} Host
 * @property {() => Snapshot | undefined} snapshot
 * @property {() => string} answerText
 * @property {(text: string) => void} save
 * @property {(text: string) => void} announce
 * @property {() => void} render
 */

/** The remaining length is shown once it is at most this many code points. */
const COUNT_FROM = 400;

/** Matches devices that probably have a keyboard: the hint names shortcuts. */
const KEYBOARD = "(hover: hover) and (pointer: fine)";

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

/** @param {string} text */
function maySave(text) {
  return text.trim() !== "" && codePoints(text) <= MAX_REASON;
}

/** The editor of one element. */
export class Editor {
  #ui;
  #host;
  #open = false;
  /** The initial text: an unchanged text is not an edit. */
  #initial = "";
  #over = false;

  /** @param {ReturnType<import("./parts.js").parts>} ui @param {Host} host */
  constructor(ui, host) {
    this.#ui = ui;
    this.#host = host;
    ui.edit.addEventListener("click", () => this.#start());
    ui.textarea.addEventListener("input", () => host.render());
    ui.editor.addEventListener("keydown", (event) => this.#key(event));
    ui.editor.addEventListener("submit", (event) => {
      event.preventDefault();
      this.#save();
    });
    ui.cancel.addEventListener("click", () => this.#close());
  }

  /** Discards the text, because the element shows another message. */
  reset() {
    this.#open = false;
  }

  #start() {
    const state = this.#host.snapshot();
    if (!state) {
      return;
    }
    const { textarea } = this.#ui;
    this.#initial = state.signals.edit.reason ?? this.#host.answerText();
    // Offer a text that was not saved.
    textarea.value = state.failedReasons.edit ?? this.#initial;
    this.#open = true;
    this.#over = false;
    this.#host.render();
    textarea.focus();
  }

  #close() {
    this.#open = false;
    this.#host.render();
    this.#ui.edit.focus();
  }

  /** @param {KeyboardEvent} event */
  #key(event) {
    if (event.isComposing) {
      return;
    }
    if (event.key === "Escape") {
      // Keep a surrounding dialog open.
      event.stopPropagation();
      event.preventDefault();
      this.#close();
    } else if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      this.#save();
    }
  }

  #save() {
    const text = this.#ui.textarea.value;
    if (!maySave(text)) {
      return;
    }
    if (text !== this.#initial) {
      this.#host.save(text);
    }
    this.#close();
  }

  /** @param {Snapshot | undefined} state @param {Labels} labels */
  render(state, labels) {
    const ui = this.#ui;
    const edit = state?.signals.edit;
    ui.slot.hidden = this.#open;
    ui.editor.hidden = !this.#open;
    ui.edited.hidden = this.#open || !edit?.active;
    ui.editedText.textContent = edit?.reason ?? "";
    ui.edit.hidden = this.#open;
    if (this.#open) {
      this.#renderHint();
      this.#renderCount(labels);
    }
  }

  #renderHint() {
    const { hint, textarea } = this.#ui;
    hint.hidden = !matchMedia(KEYBOARD).matches;
    // Screen readers read a description even if it is hidden.
    textarea.setAttribute("aria-describedby", hint.hidden ? "count" : "hint count");
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
    if (over !== this.#over) {
      this.#over = over;
      // Announce that the limit is exceeded, but not each keystroke.
      this.#host.announce(over ? labels.errorTooLong : "");
    }
    ui.save.setAttribute("aria-disabled", String(!maySave(ui.textarea.value)));
  }
}
