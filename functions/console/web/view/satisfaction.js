/** Satisfaction over time. @module */

import { trend, readRates } from "../chart/trend.js";
import { intervalText, percent } from "../format.js";
import { chartPanel } from "../panel.js";
import { starts } from "../period.js";
import { countColumn, rateColumns } from "../rate-columns.js";

/** @typedef {import("../chart/trend.js").ByUser} ByUser */

/**
 * What is in each interval of a report; the report leaves out those without anything.
 *
 * @param {any[]} reported
 * @param {{ start: number }[]} all
 */
export function aligned(reported, all) {
  const at = new Map(reported.map((each) => [Date.parse(each.start), each]));
  return all.map(({ start }) => at.get(start));
}

/** @param {import("../period.js").Interval} kind */
export function intervalColumns(kind) {
  const utc = (/** @type {number} */ ms) => new Date(ms).toISOString().slice(0, kind === "hour" ? 16 : 10);
  const title = { hour: "Hour (UTC)", day: "Day (UTC)", week: "Week from (UTC)" }[kind];
  return [
    {
      title,
      value: (/** @type {any} */ row) => utc(row.start),
      show: (/** @type {any} */ row) => intervalText(row, kind),
    },
  ];
}

/** @param {any} report @param {import("../period.js").Interval} kind @param {Node} picker @param {string} file */
export function satisfactionPanel(report, kind, picker, file) {
  const intervals = starts(report, kind);
  const rates = aligned(report.intervals, intervals).map((each) => each?.byUser);
  const series = [{ look: /** @type {const} */ ("only"), name: "Satisfaction", rates }];
  const title = "Satisfaction over time";
  const summary = `${title}, by user. ${rangeSummary(rates, intervals, kind)}`;
  const rows = intervals.map((interval, index) => ({ ...interval, rate: rates[index] }));
  return chartPanel(
    { title, note: noteOf(kind), controls: [picker] },
    trend({ intervals, kind, summary, title, series, read: (index) => readRates(series, index) }),
    {
      caption: title,
      file: `${file}-satisfaction`,
      rows,
      columns: [
        ...intervalColumns(kind),
        ...rateColumns((row) => row.rate),
        countColumn("Users", (row) => row.rate?.users ?? 0),
      ],
    },
  );
}

/** @param {import("../period.js").Interval} kind */
export function noteOf(kind) {
  const axis = {
    hour: "Hours are in your time zone.",
    day: "Days are in UTC.",
    week: "Weeks begin on Monday, in UTC, and are counted as a whole.",
  }[kind];
  return `The mean of the users’ own rates, so each user counts once. The band is the 95\u202f% interval: a step within it may be chance. ${axis}`;
}

/**
 * The extremes and the last rate, for those who do not see the chart.
 *
 * @param {(ByUser | undefined)[]} rates
 * @param {{ start: number, end: number }[]} intervals
 * @param {import("../period.js").Interval} kind
 */
export function rangeSummary(rates, intervals, kind) {
  const known = rates
    .map((rate, index) => ({ rate: rate?.satisfactionRate ?? null, at: intervals[index] }))
    .filter(({ rate }) => rate !== null);
  const ordered = known.toSorted((a, b) => Number(a.rate) - Number(b.rate));
  const text = (/** @type {typeof known[number] | undefined} */ each) =>
    each ? `${percent(each.rate)} (${intervalText(each.at, kind)})` : "";
  return known.length === 0
    ? "No verdicts."
    : `Lowest ${text(ordered[0])}, highest ${text(ordered.at(-1))}, last ${text(known.at(-1))}.`;
}
