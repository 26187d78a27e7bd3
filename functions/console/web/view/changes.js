/** What changed against the period before, by the values of a dimension. @module */

import { rateAxis, ratePlot } from "../chart/interval-plot.js";
import { dimensionName, dimensionPicker, dimensionSource } from "../dimension.js";
import { make } from "../dom.js";
import { NONE, groupName, percent, periodText } from "../format.js";
import { panel, tablePanel } from "../panel.js";
import { before } from "../period.js";
import { countColumn, rateColumns } from "../rate-columns.js";
import { router } from "../route.js";
import { change } from "../statistics.js";
import { changeText } from "./headline.js";

/**
 * @typedef {{ group: any, name: string, now: any, then: any, change: import("../statistics.js").Change | null }} Row
 */

/**
 * @param {any} now
 * @param {any} then of the period before
 * @param {{ by: string, period: import("../period.js").Period, file: string }} of
 */
export function changesPanel(now, then, { by, period, file }) {
  const title = "What changed";
  const picker = dimensionPicker(by, now.dimensions, (chosen) => router.go({ by: chosen }));
  const rows = rowsOf(now.groups, then.groups);
  if (rows.every(({ group }) => group.value === null && !group.other)) {
    return panel(
      { title, controls: [picker] },
      make(
        "p",
        {},
        "No feedback of this period has a value of this kind. It is read from ",
        dimensionSource(by),
        ", which your application sends with turns and feedback.",
      ),
    );
  }
  return tablePanel(
    { title, note: summary(rows, then, before(period)), controls: [picker] },
    {
      caption: `Satisfaction by ${dimensionName(by).toLowerCase()}, and its change`,
      file: `${file}-changes`,
      rows,
      columns: [
        { title: dimensionName(by), value: (row) => row.name },
        ...rateColumns((row) => row.now),
        {
          title: "● now  ○ before",
          look: "plot",
          heading: rateAxis(),
          show: (row) => ratePlot(row.now, "only", row.then?.satisfactionRate ?? null),
        },
        countColumn("Users", (row) => row.now.users),
        {
          title: "Before",
          look: "number",
          value: (row) => row.then?.satisfactionRate,
          show: (row) => percent(row.then?.satisfactionRate),
        },
        {
          title: "Change in points",
          value: (row) => row.change && row.change.difference * 100,
          show: (row) => (row.change ? changeText(row.change) : NONE),
        },
      ],
    },
  );
}

/**
 * Clear changes first, the largest on top; then by the number of events.
 *
 * @param {any[]} groups
 * @param {any[]} earlier
 * @returns {Row[]}
 */
function rowsOf(groups, earlier) {
  const rows = groups.map((group) => {
    // The others are other values in each period.
    const then = group.other
      ? undefined
      : earlier.find((each) => each.value === group.value && !each.other)?.total.byUser;
    return {
      group,
      name: groupName(group),
      now: group.total.byUser,
      then,
      change: group.other ? null : change(group.total.byUser, then),
    };
  });
  const size = (/** @type {Row} */ row) =>
    row.change && row.change.verdict !== "unclear" ? Math.abs(row.change.difference) : 0;
  return rows.toSorted((a, b) => size(b) - size(a));
}

/** @param {Row[]} rows @param {any} then @param {import("../period.js").Period} earlier */
function summary(rows, then, earlier) {
  const period = periodText(earlier);
  if (then.total.byUser.users === 0) {
    return `There are no verdicts from ${period} to compare with.`;
  }
  const clear = rows.filter((row) => row.change && row.change.verdict !== "unclear");
  const names = (/** @type {string} */ verdict) =>
    clear
      .filter((row) => row.change?.verdict === verdict)
      .map(({ name }) => name)
      .slice(0, 3)
      .join(", ");
  const found = [names("lower") && `Lower: ${names("lower")}.`, names("higher") && `Higher: ${names("higher")}.`]
    .filter(Boolean)
    .join(" ");
  return `Against ${period}. ${found || "No value changed clearly."} Expect about one false alarm in twenty values.`;
}
