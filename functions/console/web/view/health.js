/** The view of a deployment's queues and dead letters, which reads itself again until it is left. @module */

import { queues } from "../api.js";
import { make, swap } from "../dom.js";
import { clock, count, counted } from "../format.js";
import { DeadLetters } from "../health/dead-letters.js";
import { failure, tablePanel } from "../panel.js";
import { OPERATE } from "../session.js";
import { passed } from "../wait.js";
import { View, headingOf } from "./view.js";

const EVERY_MS = 10_000;

export class Health extends View {
  /** @param {import("../route.js").Route} _route @param {AbortSignal} signal */
  async load(_route, signal) {
    const place = make("div", { class: "content" });
    const deadLetters = new DeadLetters(signal, () => read().catch(fail));
    const show = (/** @type {any} */ found) =>
      swap(place, this.#heading(found.version), deadLetters.panel(found.deadLetters), queuesPanel(found.queues));
    const fail = (/** @type {unknown} */ error) => {
      if (!signal.aborted) {
        swap(
          place,
          failure(error, () => read().catch(fail)),
        );
      }
    };
    const read = async () => show(await queues(signal));
    const follow = async () => {
      while (await passed(EVERY_MS, signal)) {
        if (!document.hidden && !deadLetters.isBusy) {
          await read().catch(fail);
        }
      }
    };
    await read();
    follow();
    return [place];
  }

  /** @param {string} version */
  #heading(version) {
    const now = clock(new Date().toISOString());
    const facts = [make("span", {}, `Hearback ${version}`), make("span", {}, "read ", now), make("span", {}, ALL)];
    return headingOf({ title: [this.name], facts });
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
