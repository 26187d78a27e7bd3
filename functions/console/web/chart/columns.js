/** Counts over time, stacked by kind. @module */

import { draw, make } from "../dom.js";
import { count } from "../format.js";
import { countTicks } from "./scale.js";
import { TimeChart, gridLines, swatch } from "./time-chart.js";

/**
 * @typedef {{ look: "explicit" | "implicit" | "correction", name: string, counts: number[] }} Stack
 * @typedef {import("./time-chart.js").TimeModel & { stacks: Stack[] }} ColumnsModel
 */

/** @extends {TimeChart<ColumnsModel>} */
class Columns extends TimeChart {
  get height() {
    return 220;
  }

  /** @param {import("./time-chart.js").Frame} frame @param {ColumnsModel} model */
  marks(frame, { stacks, intervals }) {
    const sums = intervals.map((_, index) => stacks.reduce((sum, { counts }) => sum + counts[index], 0));
    const ticks = countTicks(Math.max(...sums));
    const top = ticks.at(-1) ?? 1;
    const y = (/** @type {number} */ value) => frame.bottom - (value / top) * (frame.bottom - frame.top);
    const grid = gridLines(ticks, frame, y, count);
    const width = Math.max(1, Math.min(28, frame.band * 0.72));
    const below = intervals.map(() => 0);
    const columns = stacks.map(({ look, counts }) =>
      draw(
        "g",
        { class: `look-${look}` },
        ...counts.map((value, index) => {
          const from = below[index];
          below[index] += value;
          const height = y(from) - y(below[index]);
          // A line of the surface's colour separates the parts.
          const isSeparate = from > 0 && height > 2;
          return (
            value > 0 &&
            draw("rect", {
              class: "area",
              x: frame.x(index) - width / 2,
              y: y(below[index]),
              width,
              height: isSeparate ? height - 1 : height,
            })
          );
        }),
      ),
    );
    return [...grid, ...columns];
  }
}

/** Lines for what is inferred, so that it differs without colour, too. Every mark of the page refers to this one. */
export function hatch() {
  const lines = draw("path", { d: "M-1 1 1 -1M0 6 6 0M5 7 7 5", class: "hatch-line" });
  const pattern = draw(
    "pattern",
    { id: "hatch", width: 6, height: 6, patternUnits: "userSpaceOnUse" },
    draw("rect", { class: "hatch-ground", width: 6, height: 6 }),
    lines,
  );
  return draw("svg", { class: "unseen", "aria-hidden": "true" }, draw("defs", {}, pattern));
}

customElements.define("console-columns", Columns);

/** @param {ColumnsModel} model */
export function columns(model) {
  return /** @type {Columns} */ (document.createElement("console-columns")).show(model);
}

/** The kinds and their totals. @param {Stack[]} stacks */
export function legend(stacks) {
  const items = stacks.map(({ look, name, counts }) => {
    const total = counts.reduce((sum, value) => sum + value, 0);
    return make("li", {}, swatch(look), name, make("b", {}, count(total)));
  });
  return make("ul", { class: "legend" }, ...items);
}
