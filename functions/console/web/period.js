/** Periods of whole days in UTC, as insights count them. Both days of a period are in it. @module */

const DAY_MS = 86_400_000;
const DATE = /^\d{4}-\d{2}-\d{2}$/;

/** With more days, the counts of ten values by day exceed what one request returns. */
export const MAX_DAYS = 366;
/** What one response can contain: intervals × (values + 3); and how many values it can list. */
const MAX_COUNTS = 5000;
const GROUPS_BESIDE_VALUES = 3;
const MAX_VALUES = 100;

export const PRESETS = [7, 30, 90];
const DEFAULT_DAYS = 30;

/** @typedef {{ from: string, to: string }} Period Dates as 2026-11-27. */
/** @typedef {"hour" | "day" | "week"} Interval */

/** @param {string} date */
function ms(date) {
  return Date.parse(`${date}T00:00:00Z`);
}

/** @param {string} date @param {number} days */
function plus(date, days) {
  return new Date(ms(date) + days * DAY_MS).toISOString().slice(0, 10);
}

export function today() {
  return new Date().toISOString().slice(0, 10);
}

/** @param {string} date */
function isDate(date) {
  return DATE.test(date) && !Number.isNaN(ms(date)) && plus(date, 0) === date;
}

/** The period of the last days, with today. @param {number} days @returns {Period} */
export function last(days) {
  return { from: plus(today(), 1 - days), to: today() };
}

/** @param {Period} period */
export function days({ from, to }) {
  return Math.round((ms(to) - ms(from)) / DAY_MS) + 1;
}

/** Why two dates are not a period; "" if they are one. @param {Period} period */
export function objection({ from, to }) {
  if (!isDate(from) || !isDate(to)) {
    return "Choose a first and a last day.";
  }
  if (from > to) {
    return "The first day must not be after the last.";
  }
  return days({ from, to }) > MAX_DAYS ? `Choose at most ${MAX_DAYS} days.` : "";
}

/** The period of an address; the default one if it has none, or an invalid one. @param {Period} period */
export function periodOf({ from, to }) {
  const period = { from, to: to || today() };
  return objection(period) === "" ? period : last(DEFAULT_DAYS);
}

/** The period of the same length that ends the day before. @param {Period} period @returns {Period} */
export function before(period) {
  return { from: plus(period.from, -days(period)), to: plus(period.from, -1) };
}

/** As the API's parameters: from the first moment to the last, exclusive. @param {Period} period */
export function query({ from, to }) {
  return { from: `${from}T00:00:00Z`, to: `${plus(to, 1)}T00:00:00Z` };
}

/**
 * The intervals in which a period can be shown: at least two, and not too many for one response.
 *
 * @param {Period} period
 */
export function intervals(period) {
  const count = days(period);
  const fits = { hour: count <= 14, day: count >= 2, week: count >= 14 };
  return /** @type {Interval[]} */ (["hour", "day", "week"]).filter((interval) => fits[interval]);
}

/**
 * The interval of an address, if it fits the period, or else one with a legible number of points.
 *
 * @param {Period} period
 * @param {string} wanted
 * @returns {Interval}
 */
export function intervalOf(period, wanted) {
  const fitting = intervals(period);
  const found = fitting.find((interval) => interval === wanted);
  if (found) {
    return found;
  }
  const count = days(period);
  return count < 3 ? "hour" : count <= 92 ? "day" : "week";
}

/**
 * How many values one response can list with their counts in each interval.
 *
 * @param {Period} period
 * @param {Interval} interval
 */
export function valuesFor(period, interval) {
  const count = Math.ceil(days(period) * { hour: 24, day: 1, week: 1 / 7 }[interval]) + 1;
  return Math.min(MAX_VALUES, Math.floor(MAX_COUNTS / count) - GROUPS_BESIDE_VALUES);
}

/**
 * Every interval of a report, also those that it leaves out.
 *
 * @param {{ from: string, to: string }} report
 * @param {Interval} interval
 */
export function starts(report, interval) {
  const step = { hour: DAY_MS / 24, day: DAY_MS, week: 7 * DAY_MS }[interval];
  const first = Date.parse(report.from);
  const count = Math.max(0, Math.round((Date.parse(report.to) - first) / step));
  return Array.from({ length: count }, (_, index) => ({
    start: first + index * step,
    end: first + (index + 1) * step,
  }));
}

/** As the parameters of reports, whose end is inclusive. @param {Period} period */
export function inclusive({ from, to }) {
  return { start: `${from}T00:00:00Z`, end: `${to}T23:59:59.999999Z` };
}
