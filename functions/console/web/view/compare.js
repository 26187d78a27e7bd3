/** The view of one dimension: all its values, and two of them compared. @module */

import { comparison, insights } from "../api.js";
import { rateAxis, ratePlot } from "../chart/interval-plot.js";
import { readRates, trend } from "../chart/trend.js";
import { dimensionName, dimensionOf, dimensionPicker, dimensionSource, firstDimension } from "../dimension.js";
import { make, segments } from "../dom.js";
import { groupName, percent } from "../format.js";
import { chartPanel, emptyState, tablePanel } from "../panel.js";
import { days, intervalOf, intervals, query, starts, valuesFor } from "../period.js";
import { countColumn, rateColumns } from "../rate-columns.js";
import { router } from "../route.js";
import { aligned, intervalColumns, noteOf, rangeSummary } from "./satisfaction.js";
import { verdictPanel } from "./verdict.js";
import { View, noFeedback, viewHeading } from "./view.js";

const DEFAULT_BY = "label.prompt_version";
const DEFAULT_POINTS = 5;
const MAX_POINTS = 50;
/** Of two values by day, each point has few users, and their bands hide each other. */
const WEEKS_FROM_DAYS = 28;

export class Compare extends View {
  /** @param {import("../route.js").Route} route @param {AbortSignal} signal @returns {Promise<Node[]>} */
  async load(route, signal) {
    const { project } = route;
    const period = { from: route.from, to: route.to };
    const interval = intervalOf(period, route.interval || (days(period) >= WEEKS_FROM_DAYS ? "week" : ""));
    const by = dimensionOf(route.by, DEFAULT_BY);
    const points = pointsOf(route.points);
    const report = await insights(project, { ...query(period), groupBy: by, values: valuesFor(period, "day") }, signal);
    const first = firstDimension(report.dimensions, by);
    if (route.by === "" && by !== first) {
      return this.load({ ...route, by: first }, signal);
    }
    const picker = dimensionPicker(by, report.dimensions, (chosen) => router.go({ by: chosen, a: "", b: "" }));
    const heading = viewHeading(this.name, { project, countedAt: report.countedAt, ...period }, picker);
    const listed = report.groups.filter((/** @type {any} */ group) => group.value !== null);
    if (report.total.events === 0 && report.total.turns.registered === 0) {
      return [heading, noFeedback(route)];
    }
    const [a, b] = pair(listed, route);
    if (a === undefined) {
      return [heading, noValues(by)];
    }
    router.complete({ by, a, b });
    const file = `${project}-${period.from}-${period.to}-${by}`;
    const values = valuesPanel(report.groups, { by, a, b, file });
    if (b === undefined) {
      return [heading, values, oneValue(a)];
    }
    const [compared, series] = await Promise.all([
      comparison(project, { ...query(period), by, a, b, points }, signal),
      interval === "day"
        ? report
        : insights(project, { ...query(period), interval, groupBy: by, values: valuesFor(period, interval) }, signal),
    ]);
    return [
      heading,
      verdictPanel(compared, points, lateStart(report.groups, compared)),
      values,
      seriesPanel(series, { a, b, interval, period, file }),
    ];
  }

  get name() {
    return "Compare";
  }

  get bones() {
    return [230, 200, 340];
  }
}

/** @param {string} text */
function pointsOf(text) {
  const points = Number(text);
  return Number.isInteger(points) && points >= 1 && points <= MAX_POINTS ? points : DEFAULT_POINTS;
}

/**
 * The two values of the address, or else those with the most feedback.
 *
 * @param {any[]} listed
 * @param {import("../route.js").Route} route
 * @returns {[string | undefined, string | undefined]}
 */
function pair(listed, route) {
  const values = listed.map(({ value }) => value);
  const a = route.a || values.find((value) => value !== route.b);
  const b = route.b && route.b !== a ? route.b : values.find((value) => value !== a);
  return [a, b];
}

/**
 * The value that appears from a later day on than the other one. Before that day, the comparison is with another
 * time.
 *
 * @param {any[]} groups by day
 * @param {any} compared
 */
function lateStart(groups, { a, b }) {
  const firsts = [a, b].map(({ value }) => ({
    value,
    day: groups.find((group) => group.value === value && !group.other)?.intervals[0]?.start.slice(0, 10),
  }));
  const [early, late] = firsts.toSorted((x, y) => (x.day ?? "").localeCompare(y.day ?? ""));
  return early.day && late.day && early.day < late.day ? late : null;
}

/** @param {string} by */
function noValues(by) {
  return emptyState(
    `Nothing to compare by ${dimensionName(by).toLowerCase()}`,
    make(
      "p",
      {},
      "No feedback of this period has a value. It is read from ",
      dimensionSource(by),
      ", which your application sends with turns and feedback; see ",
      make("cite", {}, "API"),
      " (",
      make("code", {}, "docs/reference/api.md"),
      ").",
    ),
    make("p", {}, "Choose something else to compare by, or a longer period."),
  );
}

/** @param {string} a */
function oneValue(a) {
  return emptyState(
    "There is only one value",
    make(
      "p",
      {},
      `All feedback of this period is on ${a}. A comparison needs a second value: choose a longer period, or something else to compare by.`,
    ),
  );
}

/** @param {any[]} groups @param {{ by: string, a: string, b: string | undefined, file: string }} of */
function valuesPanel(groups, { by, a, b, file }) {
  const choice =
    (
      /** @type {"a" | "b"} */ side,
      /** @type {string | undefined} */ chosen,
      /** @type {string | undefined} */ other,
    ) =>
    (/** @type {any} */ group) => {
      if (group.value === null) {
        return "";
      }
      const radio = make("input", {
        type: "radio",
        id: `${side}-${group.value}`,
        name: side,
        checked: group.value === chosen,
        disabled: group.value === other,
        "aria-label": `${side.toUpperCase()}: ${group.value}`,
      });
      radio.addEventListener("change", () => router.go({ a: a ?? "", b: b ?? "", [side]: group.value }));
      return radio;
    };
  const byUser = (/** @type {any} */ group) => group.total.byUser;
  const lookOf = (/** @type {any} */ group) => (group.value === a ? "a" : group.value === b ? "b" : "rest");
  return tablePanel(
    { title: "All values", note: "Choose which two to compare. Each user counts once for each value." },
    {
      caption: `Satisfaction by ${dimensionName(by).toLowerCase()}`,
      file: `${file}-values`,
      rows: groups,
      columns: [
        { title: dimensionName(by), value: groupName },
        { title: "A", show: choice("a", a, b) },
        { title: "B", show: choice("b", b, a) },
        ...rateColumns(byUser),
        {
          title: "",
          look: "plot",
          heading: rateAxis(),
          show: (group) => ratePlot(byUser(group), lookOf(group)),
        },
        countColumn("Users", (group) => byUser(group).users),
        countColumn("Answers", (group) => group.total.turns.registered),
        {
          title: "With explicit feedback",
          look: "number",
          value: (group) => group.total.turns.explicitShare,
          show: (group) => percent(group.total.turns.explicitShare),
        },
      ],
    },
  );
}

/**
 * @param {any} report
 * @param {{ a: string, b: string, interval: import("../period.js").Interval, period: import("../period.js").Period,
 *   file: string }} of
 */
function seriesPanel(report, { a, b, interval, period, file }) {
  const all = starts(report, interval);
  const ratesOf = (/** @type {string} */ value) => {
    const group = report.groups.find((/** @type {any} */ each) => each.value === value && !each.other);
    return aligned(group?.intervals ?? [], all).map((each) => each?.byUser);
  };
  const series = [
    { look: /** @type {const} */ ("a"), name: a, rates: ratesOf(a) },
    { look: /** @type {const} */ ("b"), name: b, rates: ratesOf(b) },
  ];
  const title = "A and B over time";
  const picker = segments(
    { id: "interval", label: "Interval" },
    intervals(period).map((each) => [each, { hour: "Hour", day: "Day", week: "Week" }[each]]),
    interval,
    (chosen) => router.go({ interval: chosen }),
  );
  const summaries = series.map(({ name, rates }) => `${name}: ${rangeSummary(rates, all, interval)}`);
  return chartPanel(
    { title, note: noteOf(interval), controls: [picker] },
    trend({
      intervals: all,
      kind: interval,
      title,
      summary: `${title}, by user. ${summaries.join(" ")}`,
      series,
      read: (index) => readRates(series, index),
    }),
    {
      caption: title,
      file: `${file}-over-time`,
      rows: all.map((each, index) => ({ ...each, index })),
      columns: [
        ...intervalColumns(interval),
        ...series.flatMap(({ name, rates }) => [
          ...rateColumns((row) => rates[row.index], name),
          countColumn(`${name}: users`, (row) => rates[row.index]?.users ?? 0),
        ]),
      ],
    },
  );
}

customElements.define("console-compare", Compare);
