/** The reasons for a thumb down, with a text field. @module */

import { MAX_REASON } from "./client.js";
import { NO_REASON, overhead, parsed, stored } from "./reasons.js";

/**
 * @typedef {import("./configuration.js").Labels} Labels
 * @typedef {import("./message.js").Signal} Signal
 * @typedef {import("./reasons.js").Reason} Reason
 * @typedef {import("./reasons.js").ReasonSignal} ReasonSignal
 * @typedef {ReturnType<import("./store.js").FeedbackStore["snapshot"]>} Snapshot
 * @typedef {object} Host
 * @property {() => Snapshot | undefined} snapshot
 * @property {() => readonly Reason[]} reasons
 * @property {(signal: Signal, active: boolean, options?: { reason?: string | null }) => void} submit
 * @property {() => void} confirm Tells the user that the feedback was stored.
 * @property {() => void} render
 */

/** @type {readonly ReasonSignal[]} */
const SIGNALS = ["inaccurate", "unsafe", "not_helpful"];

/**
 * The reasons and the text below a thumb down.
 *
 * The row opens when the user presses the thumb or the row's own button, and closes once its text is stored or the user
 * dismisses it. A reload or an action in another tab does not open it.
 */
export class ReasonRow {
  #ui;
  #host;
  #open = false;
  #typed = false;
  /** The value of the last reason chosen on this page. @type {string | null} */
  #latest = null;
  /** The signal whose text is being sent. @type {ReasonSignal | null} */
  #sending = null;
  /** @type {readonly Reason[]} */
  #reasons = [];
  /** @type {Map<Reason, HTMLButtonElement>} */
  #chips = new Map();

  /** @param {ReturnType<import("./parts.js").parts>} ui @param {Host} host */
  constructor(ui, host) {
    this.#ui = ui;
    this.#host = host;
    ui.detailsToggle.addEventListener("click", () => this.#show(!this.#open));
    ui.details.addEventListener("keydown", (event) => this.#key(event));
    ui.reasonInput.addEventListener("input", () => {
      this.#typed = true;
      this.#sending = null;
      host.render();
    });
    ui.reason.addEventListener("submit", (event) => {
      event.preventDefault();
      this.#send();
    });
  }

  /** Resets the row, because the element shows another message. */
  reset() {
    this.#open = false;
    this.#typed = false;
    this.#latest = null;
    this.#sending = null;
  }

  /** Called when the user gives or withdraws a thumb down. @param {boolean} down */
  thumb(down) {
    this.#open = down;
    this.#latest = null;
    this.#sending = null;
  }

  /** @param {boolean} open */
  #show(open) {
    this.#open = open;
    this.#host.render();
  }

  /** @param {KeyboardEvent} event */
  #key(event) {
    if (event.key === "Escape" && !event.isComposing) {
      // Keep a surrounding dialog open.
      event.stopPropagation();
      event.preventDefault();
      this.#show(false);
    }
  }

  /** @param {Snapshot} state @param {ReasonSignal} signal */
  #parsed({ signals }, signal) {
    return parsed(this.#reasons, signal, signals[signal]);
  }

  /**
   * The reason to which the text belongs: the last reason that was chosen here, else a chosen one with a text, else any
   * chosen one, else the thumb itself.
   *
   * @param {Snapshot} state
   * @returns {Reason}
   */
  #target(state) {
    const chosen = SIGNALS.map((signal) => this.#parsed(state, signal)).filter(({ reason }) => reason);
    const found =
      chosen.find(({ reason }) => reason?.value === this.#latest) ??
      chosen.find(({ text }) => text !== "") ??
      chosen[0];
    return found?.reason ?? NO_REASON;
  }

  /** @param {Reason} reason */
  #choose(reason) {
    const state = this.#host.snapshot();
    if (!state) {
      return;
    }
    const { signal } = reason;
    const before = this.#parsed(state, signal);
    if (before.reason !== reason) {
      this.#latest = reason.value;
      const plain = reason.prefix === null && !before.reason?.prefix;
      this.#host.submit(signal, true, plain ? {} : { reason: stored(reason, before.text) });
    } else if (signal === NO_REASON.signal) {
      // Keep the thumb and its text.
      this.#host.submit(signal, true, { reason: stored(NO_REASON, before.text) });
    } else {
      this.#host.submit(signal, false);
    }
  }

  #send() {
    const state = this.#host.snapshot();
    if (!state || this.#isSending(state)) {
      return;
    }
    const target = this.#target(state);
    this.#sending = target.signal;
    if (this.#typed) {
      this.#typed = false;
      const text = this.#ui.reasonInput.value.trim();
      this.#host.submit(target.signal, true, { reason: stored(target, text) });
    }
    this.#host.render();
  }

  /** @param {Snapshot} state */
  #isSending(state) {
    return this.#sending !== null && !(this.#sending in state.failedReasons);
  }

  /** Closes the row once the text is stored. @param {Snapshot | undefined} state */
  #settle(state) {
    if (state && !state.pending && this.#isSending(state)) {
      this.#sending = null;
      this.#open = false;
      this.#host.confirm();
    }
  }

  /** @param {Snapshot | undefined} state @param {Labels} labels */
  render(state, labels) {
    this.#settle(state);
    const ui = this.#ui;
    const given = SIGNALS.some((signal) => state?.signals[signal].active);
    const shown = given && this.#open;
    ui.detailsToggle.hidden = !given;
    ui.detailsToggle.setAttribute("aria-expanded", String(shown));
    ui.details.hidden = !shown;
    this.#renderChips(state, labels);
    const target = state ? this.#target(state) : NO_REASON;
    this.#renderText(state, target);
    ui.reasonLabel.textContent =
      target === NO_REASON
        ? labels.reasonText
        : labels.reasonTextFor.replace("{reason}", () => name(target, labels));
    ui.sendReason.setAttribute("aria-disabled", String(Boolean(state && this.#isSending(state))));
  }

  /** @param {Snapshot | undefined} state @param {Labels} labels */
  #renderChips(state, labels) {
    const reasons = this.#host.reasons();
    if (reasons !== this.#reasons) {
      this.#placeChips(reasons);
    }
    for (const [reason, chip] of this.#chips) {
      chip.textContent = name(reason, labels);
      const chosen = state && this.#parsed(state, reason.signal).reason === reason;
      chip.setAttribute("aria-pressed", String(Boolean(chosen)));
    }
  }

  /** @param {readonly Reason[]} reasons */
  #placeChips(reasons) {
    this.#reasons = reasons;
    this.#chips = new Map(reasons.map((reason) => [reason, this.#chip(reason)]));
    this.#ui.chips.replaceChildren(...this.#chips.values());
  }

  /** @param {Reason} reason */
  #chip(reason) {
    const chip = document.createElement("button");
    chip.type = "button";
    chip.className = "chip outlined";
    chip.part.add("button", "chip");
    if (reason.prefix === null) {
      chip.part.add(reason.signal);
    }
    chip.addEventListener("click", () => this.#choose(reason));
    return chip;
  }

  /** @param {Snapshot | undefined} state @param {Reason} target */
  #renderText(state, target) {
    const { reasonInput } = this.#ui;
    // In UTF-16 units; a text never has more code points than units.
    reasonInput.maxLength = MAX_REASON - overhead(target);
    if (this.#typed) {
      return;
    }
    const current = state?.signals[target.signal] ?? { active: false, reason: null };
    // Offer a text that was not stored.
    const failed = state?.failedReasons[target.signal];
    const shown = failed ? { active: true, reason: failed } : current;
    reasonInput.value = parsed(this.#reasons, target.signal, shown).text;
  }
}

/** @param {Reason} reason @param {Labels} labels */
function name({ label, signal }, labels) {
  return label ?? (signal === "unsafe" ? labels.unsafe : labels.inaccurate);
}
