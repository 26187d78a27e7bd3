/** The view of a deployment's queues and dead letters, which reads itself again until it is left. @module */

import { queues } from "../api.js";
import { make, swap } from "../dom.js";
import { clock, count, counted } from "../format.js";
import { DeadLetters } from "../health/dead-letters.js";
import { tablePanel } from "../panel.js";
import { OPERATE } from "../session.js";
import { passed } from "../wait.js";
import { View, headingOf } from "./view.js";

const EVERY_MS = 10_000;

export class Health extends View {
  /** @param {import("../route.js").Route} _route @param {AbortSignal} signal @returns {Promise<Node[]>} */
  async load(_route, signal) {
    const place = make("div", { class: "content" });
    const read = make("span", {}, "");
    const fault = make("p", { class: "lower done", role: "status" });
    let shown = "";
    const show = async () => {
      const found = await queues(signal);
      read.replaceChildren("read ", clock(new Date().toISOString()));
      fault.textContent = "";
      // What the reader does in a table must not end every ten seconds.
      if (JSON.stringify(found) !== shown) {
        shown = JSON.stringify(found);
        swap(place, deadLetters.panel(found.deadLetters), queuesPanel(found.queues));
      }
      return found.version;
    };
    const again = () =>
      show().catch((error) => {
        if (!signal.aborted) {
          fault.textContent = `${error instanceof Error ? error.message : error} Trying again.`;
        }
      });
    const deadLetters = new DeadLetters(signal, again);
    const follow = async () => {
      while (await passed(EVERY_MS, signal)) {
        if (!document.hidden && !deadLetters.isBusy) {
          await again();
        }
      }
    };
    const version = await show();
    follow();
    const facts = [make("span", {}, `Hearback ${version}`), read, make("span", {}, ALL)];
    return [headingOf({ title: [this.name], facts }), fault, place];
  }

  get scopes() {
    return [OPERATE];
  }

  get name() {
    return "Health";
  }

  get bones() {
    return [140, 420];
  }
}

const ALL = "of all projects and tenants";

/** @typedef {{ name: string, holds: string, waiting: number, processing: number }} Queue */

/** @param {Queue[]} rows */
function queuesPanel(rows) {
  const waiting = rows.reduce((sum, queue) => sum + queue.waiting, 0);
  const title = "Queues";
  const note = `${waiting === 0 ? "Nothing waits." : `${counted(waiting, "message")} ${waiting === 1 ? "waits" : "wait"}.`} ${NOTE}`;
  return tablePanel({ title, note }, { caption: title, file: "queues", columns: COLUMNS, rows });
}

const NOTE =
  "The numbers are approximate, and may be a minute old. Alarms say when a message has waited for too long; messages for subscribers wait until a program reads them.";

/** @param {number} number */
function quietIfZero(number) {
  return number === 0 ? make("span", { class: "note" }, "0") : count(number);
}

/** @type {import("../table.js").Column<Queue>[]} */
const COLUMNS = [
  { title: "Queue", value: ({ name }) => name },
  { title: "Waiting", look: "number", value: ({ waiting }) => waiting, show: ({ waiting }) => quietIfZero(waiting) },
  {
    title: "In progress",
    look: "number",
    value: ({ processing }) => processing,
    show: ({ processing }) => quietIfZero(processing),
  },
  { title: "Messages", value: ({ holds }) => holds },
];

customElements.define("console-health", Health);
