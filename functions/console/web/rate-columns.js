/** Columns of tables with rates: numbers with their uncertainty for the reader, and exact ones for a file. @module */

import { make } from "./dom.js";
import { NONE, count, percent, percentRange } from "./format.js";

/** @typedef {import("./statistics.js").Rate} Rate */
/** @template Row @typedef {import("./table.js").Column<Row>} Column */

/**
 * A rate and its interval.
 *
 * @template Row
 * @param {(row: Row) => Rate | undefined} rate
 * @param {string} [name] of one of several series
 * @returns {Column<Row>[]}
 */
export function rateColumns(rate, name = "") {
  const title = (/** @type {string} */ text) => (name === "" ? text : `${name}: ${text.toLowerCase()}`);
  return [
    {
      title: title("Satisfaction"),
      look: "number",
      value: (row) => rate(row)?.satisfactionRate,
      show: (row) => shown(rate(row)),
      heading: make("span", { class: "range" }, "95\u202f% interval"),
    },
    { title: title("Low"), isFileOnly: true, value: (row) => rate(row)?.satisfactionLow },
    { title: title("High"), isFileOnly: true, value: (row) => rate(row)?.satisfactionHigh },
  ];
}

/** @param {Rate | undefined} rate */
function shown(rate) {
  if (!rate || rate.satisfactionRate === null) {
    return NONE;
  }
  return make(
    "span",
    {},
    percent(rate.satisfactionRate),
    make("span", { class: "range" }, percentRange(rate.satisfactionLow, rate.satisfactionHigh)),
  );
}

/** @template Row @param {string} title @param {(row: Row) => number} value @returns {Column<Row>} */
export function countColumn(title, value) {
  return { title, look: "number", value, show: (row) => count(value(row)) };
}
