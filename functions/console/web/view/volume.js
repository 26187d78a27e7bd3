/** How much feedback there is: by channel over time, and explicit feedback beside what was inferred. @module */

import { columns, legend } from "../chart/columns.js";
import { ratePlot, rateAxis } from "../chart/interval-plot.js";
import { swatch } from "../chart/time-chart.js";
import { make } from "../dom.js";
import { count, counted, percent } from "../format.js";
import { chartPanel, tablePanel } from "../panel.js";
import { starts } from "../period.js";
import { countColumn, rateColumns } from "../rate-columns.js";
import { aligned, intervalColumns } from "./satisfaction.js";

/** Channels in the order in which they are stacked. */
const CHANNELS = /** @type {const} */ ([
  ["explicit", "Explicit"],
  ["implicit", "Inferred"],
  ["correction", "Corrections"],
]);

/** @param {any} report @param {string} channel */
function groupOf(report, channel) {
  return report.groups.find((/** @type {any} */ group) => group.value === channel);
}

/** @param {any} report by channel @param {import("../period.js").Interval} kind @param {string} file */
export function volumePanel(report, kind, file) {
  const intervals = starts(report, kind);
  const stacks = CHANNELS.map(([look, name]) => ({
    look,
    name,
    counts: aligned(groupOf(report, look)?.intervals ?? [], intervals).map((each) => each?.events ?? 0),
  }));
  const title = "Feedback by channel";
  const sums = stacks.map(({ name, counts }) => `${name}: ${count(counts.reduce((sum, value) => sum + value, 0))}`);
  const read = (/** @type {number} */ index) =>
    stacks.map(({ look, name, counts }) => ({ look, name, value: count(counts[index]) }));
  const rows = intervals.map((interval, index) => ({ ...interval, index }));
  const own = stacks.map(({ name, counts }) => countColumn(name, (/** @type {any} */ row) => counts[row.index]));
  return chartPanel(
    { title, note: "Events that were not withdrawn, by the time of the feedback." },
    columns({ intervals, kind, stacks, title, summary: `${title}, in events. ${sums.join(", ")}.`, read }),
    { caption: title, file: `${file}-channels`, rows, columns: [...intervalColumns(kind), ...own] },
    legend(stacks),
  );
}

/** @param {any} report by channel, of the whole period @param {string} file */
export function givenPanel(report, file) {
  const rows = CHANNELS.map(([look, name]) => {
    const total = groupOf(report, look)?.total;
    const verdicts = look === "implicit" ? total?.inferred : total;
    return {
      look,
      name,
      events: total?.events ?? 0,
      verdicts: verdicts ?? {
        accepted: 0,
        rejected: 0,
        neutral: 0,
        satisfactionRate: null,
        satisfactionLow: null,
        satisfactionHigh: null,
      },
    };
  });
  const { turns } = report.total;
  const coverage = `Of ${counted(turns.registered, "answer")}, ${percent(turns.explicitShare)} have explicit feedback, ${percent(turns.inferredShare)} inferred, and ${percent(turns.anyShare)} at least one of the two.`;
  return tablePanel(
    {
      title: "Explicit and inferred",
      note: "Verdicts of users and inferred ones are never added up. Here, each verdict counts, not each user.",
    },
    {
      caption: "Explicit and inferred feedback",
      file: `${file}-explicit-and-inferred`,
      rows,
      columns: [
        {
          title: "Channel",
          value: (row) => row.name,
          show: (row) => make("span", { class: "named" }, swatch(row.look), row.name),
        },
        countColumn("Events", (row) => row.events),
        countColumn("For", (row) => row.verdicts.accepted),
        countColumn("Against", (row) => row.verdicts.rejected),
        ...rateColumns((row) => row.verdicts),
        { title: "", look: "plot", heading: rateAxis(), show: (row) => ratePlot(row.verdicts, row.look) },
      ],
    },
    make("p", { class: "note" }, coverage),
  );
}
