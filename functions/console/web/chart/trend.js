/** Rates over time with their intervals, and below them how many users each is of. @module */

import { draw } from "../dom.js";
import { count, percent, percentRange, users } from "../format.js";
import { ceiling, spread } from "./scale.js";
import { TimeChart, gridLines, mark } from "./time-chart.js";

/** Height of the bars of users, and of the space above them. */
const USERS_PX = 40;
const GAP_PX = 26;
const LABEL_PX = 15;

/**
 * @typedef {{ users: number, sampled: number, satisfactionRate: number | null, satisfactionLow: number | null, satisfactionHigh: number | null }} ByUser
 * @typedef {{ look: "only" | "a" | "b", name: string, rates: (ByUser | undefined)[] }} Series A rate for each interval
 * @typedef {import("./time-chart.js").TimeModel & { series: Series[] }} TrendModel
 */

/** The values of one interval in words. @param {Series[]} series @param {number} index */
export function readRates(series, index) {
  return series.map(({ look, name, rates }) => ({ look, name, value: rateText(rates[index]) }));
}

/** @param {ByUser | undefined} rate */
function rateText(rate) {
  return rate && rate.satisfactionRate !== null
    ? `${percent(rate.satisfactionRate)} (${percentRange(rate.satisfactionLow, rate.satisfactionHigh)}), ${users(rate)}`
    : "no verdicts";
}

/** @extends {TimeChart<TrendModel>} */
class Trend extends TimeChart {
  get height() {
    return 310;
  }

  /** @param {TrendModel} model */
  rightOf({ series }) {
    const longest = Math.max(0, ...series.map(({ name }) => name.length));
    return series.length > 1 ? Math.min(110, 22 + 7 * longest) : 12;
  }

  /** @param {import("./time-chart.js").Frame} frame @param {TrendModel} model */
  marks(frame, { series, intervals }) {
    const bottom = frame.bottom - USERS_PX - GAP_PX;
    const y = (/** @type {number} */ rate) => bottom - rate * (bottom - frame.top);
    const grid = gridLines([0, 0.25, 0.5, 0.75, 1], frame, y, percent);
    const now = Date.now();
    const lines = series.map((each) => rateMarks(each, frame, y, (index) => intervals[index].end > now));
    return [...grid, ...lines, ...endLabels(series, frame, y, bottom), ...userBars(series, frame)];
  }
}

/** Runs of intervals with a rate: a line across a gap would show a rate that nobody gave. @param {Series} series */
function runs({ rates }) {
  /** @type {number[][]} */
  const found = [];
  rates.forEach((rate, index) => {
    if (typeof rate?.satisfactionRate === "number") {
      if (index > 0 && typeof rates[index - 1]?.satisfactionRate === "number") {
        found[found.length - 1].push(index);
      } else {
        found.push([index]);
      }
    }
  });
  return found;
}

/**
 * @param {Series} series
 * @param {import("./time-chart.js").Frame} frame
 * @param {(rate: number) => number} y
 * @param {(index: number) => boolean} isOpen
 */
function rateMarks(series, frame, y, isOpen) {
  const at = (/** @type {number} */ index) => /** @type {ByUser} */ (series.rates[index]);
  const point = (/** @type {number} */ index, /** @type {number | null} */ rate) =>
    `${frame.x(index).toFixed(1)},${y(rate ?? 0).toFixed(1)}`;
  const path = (/** @type {number[]} */ indexes) =>
    indexes.map((index) => point(index, at(index).satisfactionRate)).join(" ");
  const shown = runs(series).flatMap((run) => {
    const closed = run.filter((index) => !isOpen(index));
    const band = [
      ...run.map((index) => point(index, at(index).satisfactionHigh)),
      ...run.toReversed().map((index) => point(index, at(index).satisfactionLow)),
    ];
    const isAlone = run.length === 1;
    return [
      isAlone
        ? draw("line", {
            class: "whisker",
            x1: frame.x(run[0]),
            x2: frame.x(run[0]),
            y1: y(at(run[0]).satisfactionLow ?? 0),
            y2: y(at(run[0]).satisfactionHigh ?? 0),
          })
        : draw("polygon", { class: "band", points: band.join(" ") }),
      draw("polyline", { class: "line", points: path(closed) }),
      closed.length < run.length
        ? draw("polyline", { class: "line open", points: path(run.slice(Math.max(0, closed.length - 1))) })
        : null,
    ];
  });
  const size = frame.band < 9 ? 2 : 3;
  const dots = runs(series)
    .flat()
    .map((index) => {
      const dot = mark(series.look, frame.x(index), y(at(index).satisfactionRate ?? 0), size);
      dot.classList.toggle("open", isOpen(index));
      return dot;
    });
  return draw("g", { class: `look-${series.look}` }, ...shown, ...dots);
}

/**
 * The names of several series, beside their ends.
 *
 * @param {Series[]} series
 * @param {import("./time-chart.js").Frame} frame
 * @param {(rate: number) => number} y
 * @param {number} bottom
 */
function endLabels(series, frame, y, bottom) {
  const named = series.filter((each) => series.length > 1 && runs(each).length > 0);
  const ends = named.map((each) => /** @type {number} */ (runs(each).at(-1)?.at(-1)));
  const wanted = named.map((each, index) => y(each.rates[ends[index]]?.satisfactionRate ?? 0) + 4);
  const placed = spread(wanted, LABEL_PX, bottom);
  return named.map((each, index) =>
    draw("text", { class: `end-label look-${each.look}`, x: frame.right + 8, y: placed[index] }, shortened(each.name)),
  );
}

/** @param {string} name */
function shortened(name) {
  return name.length > 12 ? `${name.slice(0, 11)}…` : name;
}

/** @param {Series[]} series @param {import("./time-chart.js").Frame} frame */
function userBars(series, frame) {
  const most = Math.max(1, ...series.flatMap(({ rates }) => rates.map((rate) => rate?.users ?? 0)));
  const top = ceiling(most);
  const width = Math.max(1, Math.min(14, (frame.band * 0.7) / series.length));
  const bars = series.map((each, place) =>
    draw(
      "g",
      { class: `look-${each.look}` },
      ...each.rates.map((rate, index) => {
        const height = ((rate?.users ?? 0) / top) * USERS_PX;
        const x = frame.x(index) + (place - series.length / 2) * width;
        return (
          height > 0 &&
          draw("rect", { class: "users", x, y: frame.bottom - height, width: Math.max(1, width - 1), height })
        );
      }),
    ),
  );
  return [
    draw("line", { class: "base", x1: frame.left, x2: frame.right, y1: frame.bottom, y2: frame.bottom }),
    draw(
      "text",
      { class: "tick", x: frame.left - 8, y: frame.bottom - USERS_PX + 5, "text-anchor": "end" },
      count(top),
    ),
    draw("text", { class: "tick", x: frame.left - 8, y: frame.bottom + 2, "text-anchor": "end" }, "0"),
    draw("text", { class: "tick strong", x: frame.left, y: frame.bottom - USERS_PX - 6 }, "Users with a verdict"),
    ...bars,
  ];
}

customElements.define("console-trend", Trend);

/** @param {TrendModel} model */
export function trend(model) {
  return /** @type {Trend} */ (document.createElement("console-trend")).show(model);
}
