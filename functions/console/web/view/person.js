/** The view of one user: preferences with where they came from, their history, and erasing the user. @module */

import { ifFound, preferences } from "../api.js";
import { make } from "../dom.js";
import { erasurePanel } from "../person/erasure.js";
import { historyPanel } from "../person/history.js";
import { valuesPanel } from "../person/values.js";
import { emptyState } from "../panel.js";
import { link } from "../link.js";
import { router } from "../route.js";
import { searchForm } from "../search.js";
import { ON_BEHALF, SCOPE, session } from "../session.js";
import { View, headingOf } from "./view.js";

export class Person extends View {
  /** What the reader did, to be said once it is shown. */
  #done = "";

  /** @param {import("../route.js").Route} route @param {AbortSignal} signal */
  async load(route, signal) {
    const { user, project } = route;
    const title = user ? `Person ${user}` : this.name;
    const heading = headingOf({ title: [title], facts: user ? about(route) : [] }, search(user));
    if (!user) {
      return [heading, nobody()];
    }
    const current = await ifFound(preferences(user, signal));
    const reload = (/** @type {string} */ done) => {
      this.#done = done;
      this.show(route);
    };
    const done = this.#done ? make("p", { class: "notice good", role: "status" }, this.#done) : null;
    this.#done = "";
    const panels = await Promise.all([
      current ? valuesPanel(user, current, signal) : noPreferences(user),
      current ? historyPanel(user, reload, signal) : null,
      erasurePanel(user, project, signal),
    ]);
    return [heading, done, ...panels].filter((node) => node !== null);
  }

  get scopes() {
    const isOwn = session.caller?.sub === router.current.user;
    return isOwn ? [SCOPE] : [SCOPE, ON_BEHALF];
  }

  get name() {
    return "Person";
  }

  get bones() {
    return [320, 260, 120];
  }
}

/** @param {import("../route.js").Route} route */
function about({ user, project }) {
  const live = link({ ...router.to("live"), user }, "Feedback as it happens");
  return [make("span", {}, project), make("span", {}, live)];
}

/** @param {string} user */
function search(user) {
  const of = { id: "find-person", label: "User", submit: "Open", required: true, value: user, placeholder: "Exact id" };
  return searchForm(of, (found) => router.go({ user: found }));
}

function nobody() {
  return emptyState(
    "Whose preferences?",
    make(
      "p",
      {},
      "Enter the id of a user, as your application names them. The views Live and Conversations show the ids of users who gave feedback.",
    ),
  );
}

/** @param {string} user */
function noPreferences(user) {
  return emptyState(
    "Only defaults",
    make(
      "p",
      {},
      make("b", {}, user),
      " has set no preferences, and nothing was learned from feedback yet. An application reads the defaults.",
    ),
  );
}

customElements.define("console-person", Person);
