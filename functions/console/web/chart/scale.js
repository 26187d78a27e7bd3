/** Positions and ticks of axes. @module */

/** A least distance between the labels of a time axis, in pixels. */
const LABEL_PX = 58;
const STEPS = { hour: [1, 2, 3, 6, 12, 24, 48, 96], day: [1, 2, 7, 14, 28, 56], week: [1, 2, 4, 8, 13, 26] };

/**
 * Round numbers from 0 that include a maximum.
 *
 * @param {number} maximum
 * @param {number} most ticks
 * @returns {number[]}
 */
export function countTicks(maximum, most = 4) {
  const rough = Math.max(1, maximum) / most;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = Math.max(1, [1, 2, 5, 10].map((each) => each * power).find((each) => each >= rough - 1e-9) ?? rough);
  const ticks = Math.ceil(Math.max(1, maximum) / step);
  return Array.from({ length: ticks + 1 }, (_, index) => index * step);
}

/** The least round number that is not below a maximum. @param {number} maximum at least 1 */
export function ceiling(maximum) {
  const power = 10 ** Math.floor(Math.log10(maximum));
  return Math.ceil(([1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8].find((each) => each * power >= maximum) ?? 10) * power);
}

/**
 * The indexes of the intervals that an axis labels: round hours, or Mondays.
 *
 * @param {{ start: number }[]} intervals
 * @param {"hour" | "day" | "week"} kind
 * @param {number} width in pixels
 */
export function timeTicks(intervals, kind, width) {
  const most = Math.max(2, Math.floor(width / LABEL_PX));
  const step = STEPS[kind].find((each) => intervals.length / each <= most) ?? Math.ceil(intervals.length / most);
  const offset = kind === "week" || intervals.length === 0 ? 0 : phase(intervals[0].start, kind);
  return intervals.map((_, index) => index).filter((index) => (index + offset) % step === 0);
}

/**
 * How many hours after midnight in the reader's zone, or days after Monday, an axis begins.
 *
 * @param {number} start
 * @param {"hour" | "day"} kind
 */
function phase(start, kind) {
  return kind === "hour" ? new Date(start).getHours() : (new Date(start).getUTCDay() + 6) % 7;
}

/**
 * Moves labels apart that are closer than a distance, in their order.
 *
 * @param {number[]} positions
 * @param {number} distance
 * @param {number} lowest
 */
export function spread(positions, distance, lowest) {
  const order = positions.map((position, index) => ({ position, index })).sort((a, b) => a.position - b.position);
  order.forEach((each, index) => {
    each.position = index === 0 ? each.position : Math.max(each.position, order[index - 1].position + distance);
  });
  for (let index = order.length - 1, limit = lowest; index >= 0; index -= 1, limit -= distance) {
    order[index].position = Math.min(order[index].position, limit);
  }
  return order.sort((a, b) => a.index - b.index).map(({ position }) => position);
}
