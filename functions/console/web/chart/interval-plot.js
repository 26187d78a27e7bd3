/**
 * A rate with its interval on a line from 0 to 100 %, for a cell of a table; and a difference with its interval.
 *
 * @module
 */

import { draw, make } from "../dom.js";
import { countTicks } from "./scale.js";

const HEIGHT = 26;
const MIDDLE = HEIGHT / 2;

/** Positions in percent of the width, so that a plot needs no redrawing. @param {number} share 0 to 1 */
function x(share) {
  return `${(share * 100).toFixed(2)}%`;
}

/** @param {string} look @param {number} share */
function marker(look, share) {
  // A nested svg is a point of origin: a polygon has no positions in percent.
  const shape =
    look === "b"
      ? draw("polygon", { class: "mark", points: "0,-5.5 5.5,0 0,5.5 -5.5,0" })
      : draw("circle", { class: "mark", r: look === "before" ? 3.5 : 4.5 });
  return draw("svg", { class: "origin", x: x(share), y: MIDDLE }, shape);
}

/** The labels of the line. */
export function rateAxis() {
  return make(
    "span",
    { class: "rate-axis", "aria-hidden": "true" },
    ...["0", "50", "100\u202f%"].map((text) => make("span", {}, text)),
  );
}

/**
 * The numbers are in the table's other cells, so it is hidden from screen readers.
 *
 * @param {import("../statistics.js").Rate} rate
 * @param {"only" | "a" | "b" | "rest" | "explicit" | "implicit" | "correction"} [look]
 * @param {number | null} [before] the rate of the period before
 */
export function ratePlot({ satisfactionRate, satisfactionLow, satisfactionHigh }, look = "only", before = null) {
  const grid = [0, 0.25, 0.5, 0.75, 1].map((share) =>
    draw("line", { class: "grid", x1: x(share), x2: x(share), y1: 0, y2: HEIGHT }),
  );
  const hasRate = satisfactionRate !== null && satisfactionLow !== null && satisfactionHigh !== null;
  const shown = hasRate
    ? [
        draw("line", {
          class: "whisker",
          x1: x(satisfactionLow),
          x2: x(satisfactionHigh),
          y1: MIDDLE,
          y2: MIDDLE,
        }),
        marker(look, satisfactionRate),
      ]
    : [];
  const earlier = before === null ? null : draw("g", { class: "look-before" }, marker("before", before));
  return draw(
    "svg",
    { class: `rate-plot look-${look}`, height: HEIGHT, "aria-hidden": "true" },
    ...grid,
    earlier,
    ...shown,
  );
}

/**
 * A difference on a line around 0, with the zone in which it does not matter.
 *
 * @param {{ difference: number, low: number, high: number }} of −1 to 1
 * @param {number} points half the width of the zone, in percentage points
 * @param {{ summary: string, left: string, right: string }} words
 */
export function differencePlot({ difference, low, high }, points, { summary, left, right }) {
  const reach = Math.min(100, countTicks(Math.max(-low * 100, high * 100, points * 1.5), 2).at(-1) ?? 100);
  const at = (/** @type {number} */ value) => x((Math.max(-reach, Math.min(reach, value)) + reach) / (2 * reach));
  const ticks = [-reach, -reach / 2, 0, reach / 2, reach];
  const labels = ticks.map((value, index) => {
    const anchor = index === 0 ? "start" : index === ticks.length - 1 ? "end" : "middle";
    return draw(
      "text",
      { class: "tick", x: at(value), y: 62, "text-anchor": anchor },
      `${value > 0 ? "+" : ""}${value}`.replace("-", "−"),
    );
  });
  const zone = `${(points / reach) * 100}%`;
  const svg = draw(
    "svg",
    { class: "difference-plot look-only", height: 66, role: "img", "aria-label": summary },
    draw("rect", { class: "zone", x: at(-points), y: 6, width: zone, height: 40 }),
    ...ticks.map((value) =>
      draw("line", { class: value === 0 ? "base" : "grid", x1: at(value), x2: at(value), y1: 6, y2: 46 }),
    ),
    draw("line", { class: "whisker", x1: at(low * 100), x2: at(high * 100), y1: 26, y2: 26 }),
    draw("svg", { class: "origin", x: at(difference * 100), y: 26 }, draw("circle", { class: "mark", r: 5.5 })),
    ...labels,
  );
  return make(
    "div",
    { class: "difference" },
    make("p", { class: "sides", "aria-hidden": "true" }, make("span", {}, left), make("span", {}, right)),
    svg,
  );
}
