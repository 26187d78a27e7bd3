/**
 * The change between two periods. The API compares values, and not periods.
 *
 * @module
 */

/**
 * @typedef {{ satisfactionRate: number | null, satisfactionLow: number | null, satisfactionHigh: number | null }}
 *   Rate
 */
/** @typedef {{ difference: number, low: number, high: number, verdict: "higher" | "lower" | "unclear" }} Change */

/**
 * The difference of two rates with its 95 % interval, from the intervals of the rates (Newcombe 1998, method 10). Users
 * who are in both periods make the true interval narrower, so that it errs on the side of “no clear change”.
 *
 * @param {Rate | undefined} now
 * @param {Rate | undefined} then
 * @returns {Change | null} null without one of the rates
 */
export function change(now, then) {
  if (typeof now?.satisfactionRate !== "number" || typeof then?.satisfactionRate !== "number") {
    return null;
  }
  const [rate, low, high] = numbers(now);
  const [earlier, earlierLow, earlierHigh] = numbers(then);
  const difference = rate - earlier;
  const ends = {
    low: difference - Math.hypot(rate - low, earlierHigh - earlier),
    high: difference + Math.hypot(high - rate, earlier - earlierLow),
  };
  const verdict = ends.low > 0 ? "higher" : ends.high < 0 ? "lower" : "unclear";
  return { difference, ...ends, verdict };
}

/** @param {Rate} rate */
function numbers({ satisfactionRate, satisfactionLow, satisfactionHigh }) {
  return [Number(satisfactionRate), Number(satisfactionLow), Number(satisfactionHigh)];
}
