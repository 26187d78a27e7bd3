/** What the comparison of two values says, in words and as a plot. @module */

import { differencePlot, rateAxis, ratePlot } from "../chart/interval-plot.js";
import { button, make } from "../dom.js";
import {
  count,
  counted,
  percent,
  percentRange,
  periodText,
  points as pointsText,
  pointsRange,
  users,
} from "../format.js";
import { panel } from "../panel.js";
import { router } from "../route.js";
import { swatch } from "../chart/time-chart.js";

/** With fewer users of a value the API gives no verdict. */
const LEAST_USERS = 20;

/**
 * @param {any} compared the response
 * @param {number} points
 * @param {{ value: string, day: string } | null} late the value that came later, and when
 */
export function verdictPanel(compared, points, late) {
  const { a, b, difference, differenceLow, differenceHigh } = compared;
  const hasDifference = difference !== null;
  const words = {
    summary: `Difference ${pointsText(difference)}, 95 % interval ${pointsRange(differenceLow, differenceHigh)}`,
    left: `◀ ${b.value} is worse`,
    right: `${b.value} is better ▶`,
  };
  return panel(
    { title: "Is B better than A?", controls: [tolerance(points)] },
    make("p", { class: `verdict ${compared.verdict}` }, headlineOf(compared)),
    make("p", { class: "explained" }, explanation(compared, points)),
    hasDifference ? differencePlot({ difference, low: differenceLow, high: differenceHigh }, points, words) : null,
    make("div", { class: "sides-of" }, sideOf("a", a), sideOf("b", b)),
    late ? lateNote(late) : null,
    ...notes(compared),
  );
}

/** The mark says the same as the words, and is not only a colour. @param {any} compared */
function headlineOf({ verdict, a, b }) {
  switch (verdict) {
    case "better":
      return `▲ ${b.value} is better than ${a.value}`;
    case "worse":
      return `▼ ${b.value} is worse than ${a.value}`;
    case "no_difference_found":
      return `= No difference found between ${b.value} and ${a.value}`;
    default:
      return `? Cannot tell yet whether ${b.value} is better than ${a.value}`;
  }
}

/** @param {any} compared @param {number} points */
function explanation({ verdict, a, b, difference, differenceLow, differenceHigh, moreUsers }, points) {
  const apart =
    difference === null
      ? ""
      : `The difference is ${pointsText(difference)}, with a 95\u202f% interval of ${pointsRange(differenceLow, differenceHigh)}. `;
  switch (verdict) {
    case "better":
    case "worse":
      return `${apart}The whole interval is ${verdict === "better" ? "above" : "below"} 0.`;
    case "no_difference_found":
      return `${apart}The whole interval is within ${points} points around 0: if there is a difference, it is smaller than what matters.`;
    default: {
      const few = [a, b].filter(({ byUser }) => byUser.sampled < LEAST_USERS).map(({ value }) => value);
      const why =
        few.length > 0
          ? `Fewer than ${LEAST_USERS} users gave feedback on ${few.join(" and on ")}. `
          : "The interval is too wide to say. ";
      const more =
        typeof moreUsers === "number"
          ? `About ${counted(moreUsers, "more user")} of each are needed, if their feedback is like that so far.`
          : "";
      return apart + why + more;
    }
  }
}

/** @param {"a" | "b"} side @param {any} of */
function sideOf(side, { value, byUser, turns, events }) {
  const range =
    byUser.satisfactionRate === null
      ? "no verdicts yet"
      : `95\u202f% interval ${percentRange(byUser.satisfactionLow, byUser.satisfactionHigh)}`;
  return make(
    "section",
    { class: "side", "aria-label": `${side.toUpperCase()}: ${value}` },
    make("h3", {}, swatch(side), `${side.toUpperCase()}: ${value}`),
    make("p", {}, make("strong", {}, percent(byUser.satisfactionRate)), make("span", { class: "range" }, range)),
    ratePlot(byUser, side),
    rateAxis(),
    make(
      "p",
      { class: "note" },
      `${users(byUser)}, ${counted(events, "event")}; explicit feedback on ${percent(turns.explicitShare)} of ${counted(turns.registered, "answer")}`,
    ),
  );
}

/** @param {{ value: string, day: string }} late */
function lateNote({ value, day }) {
  const date = periodText({ from: day, to: day });
  return make(
    "div",
    { class: "hint" },
    make(
      "p",
      {},
      `In this period, ${value} appears only from ${date} on. Compare from that day, so that both are about the same time.`,
    ),
    button(`Compare from ${date}`, () => router.go({ from: day }), { id: "same-time" }),
  );
}

/** @param {any} compared */
function notes({ a, b, incomplete }) {
  const lines = [];
  if (incomplete) {
    lines.push(
      make(
        "p",
        { class: "notice" },
        "Feedback may be missing: on some day there were more than 100 values, and only the 100 most frequent ones are counted apart.",
      ),
    );
  }
  const sampled = [a, b].some(({ byUser }) => byUser.users > byUser.sampled);
  const sample = sampled
    ? `The comparison uses a sample of ${count(a.byUser.sampled)} and ${count(b.byUser.sampled)} users. `
    : "";
  lines.push(
    make(
      "p",
      { class: "note" },
      `${sample}You may look as often as you like, as long as the first day and the points stay the same: this interval, about one and a half times as wide as an ordinary one, is valid at every look. `,
      "It says what users thought, and not why: if values are not assigned at random, or the shares of answers with feedback differ, other things may differ, too.",
    ),
  );
  return lines;
}

/** The difference that matters. @param {number} points */
function tolerance(points) {
  const field = make("input", {
    id: "points",
    type: "number",
    min: 1,
    max: 50,
    step: 1,
    value: points,
    required: true,
  });
  const form = make(
    "form",
    { class: "row" },
    make(
      "label",
      { class: "field", title: "A smaller difference, in percentage points, does not matter to you" },
      make("span", {}, "Difference that matters, in points"),
      field,
    ),
    button("Apply", () => form.requestSubmit(), { class: "quiet" }),
  );
  form.addEventListener("submit", (/** @type {SubmitEvent} */ event) => {
    event.preventDefault();
    router.go({ points: field.value });
  });
  return form;
}
