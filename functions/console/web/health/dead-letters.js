/** What was given up, why, and moving it back (docs/reference/operations.md). @module */

import { redrive } from "../api.js";
import { button, make } from "../dom.js";
import { count, counted } from "../format.js";
import { command, panel } from "../panel.js";
import { saveButton, tableElement } from "../table.js";

/**
 * @typedef {{ reason: string, count: number }} Reason
 *
 * @typedef {{ queue: string, holds: string, count: number, redrivable: boolean, reasons: Reason[] }} Given a dead-letter queue
 */

export class DeadLetters {
  #signal;
  #changed;
  /** Whether dead letters are being moved, so that the view must stay as it is. */
  isBusy = false;
  /** What became of what the reader did. It stays while the rest is read again. */
  #status = make("p", { class: "done", role: "status" });

  /** @param {AbortSignal} signal @param {() => void} changed reads the queues again */
  constructor(signal, changed) {
    this.#signal = signal;
    this.#changed = changed;
  }

  /** @param {Given[]} all */
  panel(all) {
    const rows = all.filter((given) => given.count > 0);
    const sum = rows.reduce((total, given) => total + given.count, 0);
    const title = "Dead letters";
    if (rows.length === 0) {
      return panel({ title, note: "Nothing was given up." }, this.#status);
    }
    const note = `${counted(sum, "message")} ${sum === 1 ? "was" : "were"} given up after many attempts, or rejected. Repair the cause, then move them back: what fails again returns here.`;
    const [queue, number, ...others] = COLUMNS;
    const act = { title: "", show: (/** @type {Given} */ given) => this.#action(given) };
    const table = { caption: title, file: "dead-letters", columns: [queue, number, act, ...others], rows };
    const shown = [this.#status, tableElement(table)];
    if (rows.some((given) => given.queue === STREAM)) {
      shown.push(make("p", { class: "note" }, "Records of the stream are delivered again by:"), command(REDELIVER));
    }
    return panel({ title, note, controls: [saveButton(table)] }, ...shown);
  }

  /** @param {Given} given */
  #action({ queue, count: number, redrivable }) {
    if (!redrivable) {
      return make("span", { class: "note" }, queue === STREAM ? "By command" : "Harmless: delete");
    }
    const act = () => this.#move(queue, number);
    return button("Move back", act, { id: `redrive-${queue}`, "aria-label": `Move back: ${queue}` });
  }

  /** Moves what was there at the click. @param {string} queue @param {number} all */
  async #move(queue, all) {
    if (this.isBusy) {
      return;
    }
    this.isBusy = true;
    let moved = 0;
    let failed = 0;
    let problem = "";
    let isBad = false;
    try {
      let outcome;
      do {
        this.#status.textContent = `Moving ${queue}: ${count(moved)} of ${count(all)}…`;
        outcome = await redrive(queue, all - moved, this.#signal);
        moved += outcome.moved;
        failed += outcome.failed;
        // What fails again at once must not be moved in circles.
      } while (moved < all && outcome.moved > 0);
      if (failed > 0) {
        isBad = true;
        problem = ` ${counted(failed, "message")} stayed: ${WHY}`;
      } else if (moved < all) {
        problem = " There were no more: the count is approximate.";
      }
    } catch (error) {
      isBad = true;
      problem = ` ${error instanceof Error ? error.message : error}`;
    }
    this.#status.textContent = `${queue}: ${counted(moved, "message")} moved back.${problem}`;
    this.#status.classList.toggle("lower", isBad);
    this.isBusy = false;
    if (!this.#signal.aborted) {
      this.#changed();
    }
  }
}

const STREAM = "stream";
const REDELIVER = "hearback redrive --queue stream";
const WHY = "nothing says where they came from, or a call failed. The log of the function has the reason.";

/** @type {import("../table.js").Column<Given>[]} */
const COLUMNS = [
  { title: "Queue", value: ({ queue }) => queue },
  { title: "Count", look: "number", value: (given) => given.count, show: (given) => count(given.count) },
  {
    title: "Reasons of up to ten",
    value: ({ reasons }) => reasons.map((each) => `${each.count} × ${each.reason}`).join("; "),
    show: ({ reasons }) =>
      make("ul", { class: "reasons" }, ...reasons.map((each) => make("li", {}, `${each.count} × ${each.reason}`))),
  },
  { title: "Messages", value: ({ holds }) => holds },
];
