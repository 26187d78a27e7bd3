/** Numbers and times in words. Narrow no-break spaces keep a number and its unit on one line. @module */

import { make } from "./dom.js";

const COUNT = new Intl.NumberFormat("en");
const COARSE = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const FINE = new Intl.NumberFormat("en", { maximumFractionDigits: 1 });
const UTC_DAY = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short", timeZone: "UTC" });
const UTC_DAY_LONG = new Intl.DateTimeFormat("en-GB", {
  weekday: "short",
  day: "numeric",
  month: "short",
  timeZone: "UTC",
});
const UTC_DATE = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short", year: "numeric", timeZone: "UTC" });
const LOCAL_TIME = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit" });
const LOCAL_CLOCK = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit" });
const LOCAL_DAY = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short" });
const LOCAL_MOMENT = new Intl.DateTimeFormat("en-GB", {
  weekday: "short",
  day: "numeric",
  month: "short",
  hour: "2-digit",
  minute: "2-digit",
});

/** Where there is no number. */
export const NONE = "–";

/** @param {number} value */
export function count(value) {
  return COUNT.format(value);
}

/** No more digits than the uncertainty of such numbers allows. @param {number} hundredths */
function rounded(hundredths) {
  return (Math.abs(hundredths) < 9.95 ? FINE : COARSE).format(hundredths).replace("-", "−");
}

/** @param {number | null | undefined} rate 0 to 1 */
export function percent(rate) {
  return rate === null || rate === undefined ? NONE : `${rounded(rate * 100)}\u202f%`;
}

/** @param {number | null} low @param {number | null} high */
export function percentRange(low, high) {
  return low === null || high === null ? NONE : `${rounded(low * 100)} to ${rounded(high * 100)}\u202f%`;
}

/** @param {number} difference −1 to 1 */
function signed(difference) {
  const text = rounded(difference * 100);
  return difference > 0 && text !== "0" ? `+${text}` : text.replace(/^−0$/, "0");
}

/** @param {number | null} difference −1 to 1 */
export function points(difference) {
  return difference === null ? NONE : `${signed(difference)} points`;
}

/** @param {number} low @param {number} high */
export function pointsRange(low, high) {
  return `${signed(low)} to ${signed(high)}`;
}

/** @param {number} number @param {string} one @param {string} [many] */
export function counted(number, one, many = `${one}s`) {
  return `${count(number)} ${number === 1 ? one : many}`;
}

/**
 * The users of a rate. Beyond the sample their number is an estimate.
 *
 * @param {{ users: number, sampled: number }} byUser
 */
export function users(byUser) {
  const about = byUser.users > byUser.sampled ? "about " : "";
  return about + counted(byUser.users, "user");
}

/** A day of UTC, such as 17 Nov. @param {number} ms */
export function day(ms) {
  return UTC_DAY.format(ms);
}

/** The first and the last day of a period. @param {{ from: string, to: string }} period */
export function periodText({ from, to }) {
  const [first, end] = [Date.parse(from), Date.parse(to)];
  const isOneYear = from.slice(0, 4) === to.slice(0, 4);
  return from === to
    ? UTC_DATE.format(end)
    : `${(isOneYear ? UTC_DAY : UTC_DATE).format(first)} – ${UTC_DATE.format(end)}`;
}

/**
 * A tick of a time axis: hours are in the reader's zone, days and weeks in UTC.
 *
 * @param {number} ms
 * @param {string} interval
 */
export function tick(ms, interval) {
  if (interval !== "hour") {
    return day(ms);
  }
  return new Date(ms).getHours() === 0 ? LOCAL_DAY.format(ms) : LOCAL_TIME.format(ms);
}

/** @param {{ start: number, end: number }} interval @param {string} kind */
export function intervalText({ start, end }, kind) {
  switch (kind) {
    case "hour":
      return `${LOCAL_MOMENT.format(start)} – ${LOCAL_TIME.format(end)}`;
    case "week":
      return `Week of ${day(start)} – ${day(end - 1)}`;
    default:
      return UTC_DAY_LONG.format(start);
  }
}

/** A moment in the reader's zone, with UTC on hover. @param {string} iso */
export function moment(iso) {
  const utc = `${iso.slice(0, 19).replace("T", " ")} UTC`;
  return make("time", { datetime: iso, title: utc }, LOCAL_MOMENT.format(Date.parse(iso)));
}

/** A moment of the last hours, with seconds. @param {string} iso */
export function clock(iso) {
  const time = moment(iso);
  time.textContent = LOCAL_CLOCK.format(Date.parse(iso));
  return time;
}

/** What a group of a report is called. @param {{ value: string | null, other: boolean }} group */
export function groupName({ value, other }) {
  return other ? "All others" : (value ?? "No value");
}
