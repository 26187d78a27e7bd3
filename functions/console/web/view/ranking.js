/** The most frequent values, with bars. @module */

import { draw, make } from "../dom.js";
import { groupName, percent } from "../format.js";
import { tablePanel } from "../panel.js";
import { countColumn } from "../rate-columns.js";

/**
 * @param {{ title: string, column: string, report: any, file: string, name?: (group: any) => string, note?: string, none?: string }} of
 *   `none` is said instead of the events without a value, which are left out
 */
export function ranking({ title, column, report, file, name = groupName, note, none }) {
  const rows = none ? report.groups.filter((/** @type {any} */ group) => group.value !== null) : report.groups;
  const all = rows.reduce((/** @type {number} */ sum, /** @type {any} */ group) => sum + group.total.events, 0);
  const most = Math.max(1, ...rows.map((/** @type {any} */ group) => group.total.events));
  const share = (/** @type {any} */ group) => (all > 0 ? group.total.events / all : null);
  return tablePanel(
    { title, note },
    {
      caption: title,
      file,
      rows,
      columns: [
        { title: column, value: groupName, show: name },
        { title: "", look: "share", show: (group) => bar(group.total.events / most) },
        countColumn("Events", (group) => group.total.events),
        { title: "Share", look: "number", value: share, show: (group) => percent(share(group)) },
      ],
    },
    ...(all === 0 ? [make("p", { class: "note" }, none ?? "No events in this period.")] : []),
  );
}

/** @param {number} length 0 to 1 */
function bar(length) {
  return draw(
    "svg",
    { class: "bar-plot", height: 10, "aria-hidden": "true" },
    draw("rect", { width: `${(length * 100).toFixed(2)}%`, height: 10, rx: 2 }),
  );
}
