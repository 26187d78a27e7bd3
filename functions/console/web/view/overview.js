/** The view of one period: how satisfied users are, how much feedback there is, and what changed. @module */

import { insights } from "../api.js";
import { CORRECTIONS, capital } from "../conversation/words.js";
import { dimensionOf, firstDimension } from "../dimension.js";
import { make, segments } from "../dom.js";
import { before, days, intervalOf, intervals, query, valuesFor } from "../period.js";
import { router } from "../route.js";
import { changesPanel } from "./changes.js";
import { headline } from "./headline.js";
import { ranking } from "./ranking.js";
import { satisfactionPanel } from "./satisfaction.js";
import { View, noFeedback, viewHeading } from "./view.js";
import { givenPanel, volumePanel } from "./volume.js";

const DEFAULT_BY = "taskType";

/** Why answers were corrected or rejected (docs/reference/insights.md). @type {Record<string, string>} */
const REASONS = {
  content: "content corrected",
  format: "format corrected",
  accuracy: "accuracy corrected",
  completeness: "completed",
  ...CORRECTIONS,
};

export class Overview extends View {
  /** @param {import("../route.js").Route} route @param {AbortSignal} signal */
  async load(route, signal) {
    const { project } = route;
    const period = { from: route.from, to: route.to };
    const interval = intervalOf(period, route.interval);
    const named = dimensionOf(route.by, DEFAULT_BY);
    const read = (/** @type {object} */ more, of = period) =>
      insights(project, { ...query(of), interval: "day", ...more }, signal);
    const values = valuesFor(period, "day");
    // Weeks are counted as a whole, so totals are of days.
    const compared = (/** @type {string} */ by) =>
      Promise.all([read({ groupBy: by }), read({ groupBy: by, values }, before(period))]);
    const [channels, series, byNamed, reasons, types, outcomes] = await Promise.all([
      read({ groupBy: "channel" }),
      interval === "day" ? null : read({ groupBy: "channel", interval }),
      compared(named),
      read({ groupBy: "reason" }),
      read({ groupBy: "type" }),
      read({ groupBy: "outcome" }),
    ]);
    const by = route.by ? named : firstDimension(channels.dimensions, named);
    const [now, then] = by === named ? byNamed : await compared(by);
    const over = series ?? channels;
    const { total } = now;
    const heading = viewHeading(this.name, { project, countedAt: now.countedAt, ...period });
    if (total.events === 0 && total.turns.registered === 0) {
      return [heading, noFeedback(route)];
    }
    const picker = segments(
      { id: "interval", label: "Interval" },
      intervals(period).map((each) => [each, { hour: "Hour", day: "Day", week: "Week" }[each]]),
      interval,
      (chosen) => router.go({ interval: chosen }),
    );
    const file = `${project}-${period.from}-${period.to}`;
    return [
      heading,
      headline(total, then.total, days(period)),
      satisfactionPanel(over, interval, picker, file),
      make("div", { class: "pair" }, volumePanel(over, interval, file), givenPanel(channels, file)),
      changesPanel(now, then, { by, period, file }),
      ranking({
        title: "Reasons",
        column: "Reason",
        report: reasons,
        file: `${file}-reasons`,
        name: ({ value }) => capital(REASONS[value] ?? value),
        note: "What is wrong with answers, where feedback says so: of corrections, and of what users wrote next.",
        none: "No correction with a type, and no rejection in a message, in this period.",
      }),
      make(
        "div",
        { class: "pair" },
        ranking({ title: "Types of feedback", column: "Type", report: types, file: `${file}-types` }),
        ranking({ title: "Outcomes", column: "Outcome", report: outcomes, file: `${file}-outcomes` }),
      ),
    ];
  }

  get name() {
    return "Overview";
  }

  get bones() {
    return [110, 360, 300, 300];
  }
}

customElements.define("console-overview", Overview);
