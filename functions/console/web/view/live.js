/** The view of feedback as it happens, and of one feedback with everything that follows from it. @module */

import { make, segments, select } from "../dom.js";
import { feedbackPage } from "../live/follow.js";
import { livePanel } from "../live/panel.js";
import { Stream } from "../live/stream.js";
import { router } from "../route.js";
import { searchForm } from "../search.js";
import { View, headingOf } from "./view.js";

/** @type {[value: string, text: string][]} */
const CHANNELS = [
  ["", "All"],
  ["explicit", "Explicit"],
  ["implicit", "Inferred"],
  ["correction", "Corrections"],
];
const OUTCOMES = ["accepted", "rejected", "rated", "modified", "commented", "observed"];

export class Live extends View {
  /** @param {import("../route.js").Route} route @param {AbortSignal} signal */
  async load(route, signal) {
    if (route.feedback) {
      return feedbackPage(route, signal);
    }
    const { project, channel, outcome, user } = route;
    const stream = new Stream({
      projectId: project,
      channel: channel || undefined,
      outcome: outcome || undefined,
      userId: user || undefined,
    });
    await stream.read(signal);
    const heading = headingOf({ title: [this.name], facts: [make("span", {}, project)] }, filters(route));
    return [heading, livePanel(stream, `${project}-live`, signal)];
  }

  get name() {
    return "Live";
  }

  get bones() {
    return [420];
  }
}

/** @param {import("../route.js").Route} route */
function filters({ channel, outcome, user }) {
  const of = { id: "user", label: "User", submit: "Show", value: user, placeholder: "All" };
  const form = searchForm(of, (found) => router.go({ user: found }));
  const outcomes = select(
    { id: "outcome", label: "Outcome" },
    [["", "All"], ...OUTCOMES.map((each) => /** @type {[string, string]} */ ([each, each]))],
    outcome,
    (chosen) => router.go({ outcome: chosen }),
  );
  return make(
    "div",
    { class: "row" },
    segments({ id: "channel", label: "Channel" }, CHANNELS, channel, (chosen) => router.go({ channel: chosen })),
    outcomes,
    form,
  );
}

customElements.define("console-live", Live);
