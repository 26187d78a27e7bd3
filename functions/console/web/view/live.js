/** The view of feedback as it happens, and of one feedback with everything that follows from it. @module */

import { make, segments, select } from "../dom.js";
import { feedbackPage } from "../live/follow.js";
import { livePanel } from "../live/panel.js";
import { Stream } from "../live/stream.js";
import { router } from "../route.js";
import { View } from "./view.js";

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
    const known = { channel, outcome, userId: user };
    const chosen = Object.fromEntries(Object.entries(known).filter(([, value]) => value !== ""));
    const stream = new Stream({ projectId: project, ...chosen });
    await stream.read(signal);
    const heading = make(
      "div",
      { class: "view-heading" },
      make("div", {}, make("h1", {}, this.name), make("p", { class: "about" }, make("span", {}, project))),
      filters(route),
    );
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
  const field = make("input", {
    id: "user",
    type: "search",
    value: user,
    maxlength: 256,
    placeholder: "All",
    autocomplete: "off",
    spellcheck: "false",
  });
  const form = make(
    "form",
    { class: "row", role: "search" },
    make("label", { class: "field", for: "user" }, make("span", {}, "User"), field),
    make("button", { type: "submit" }, "Show"),
  );
  form.addEventListener("submit", (/** @type {SubmitEvent} */ event) => {
    event.preventDefault();
    router.go({ user: field.value.trim() });
  });
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
