/** The frame of all views: the bar with navigation, project and period, or the sign-in page. @module */

import { ICON, button, make, select, swap } from "./dom.js";
import { periodPicker } from "./period-picker.js";
import { periodOf } from "./period.js";
import { openWithin, router } from "./route.js";
import { session } from "./session.js";
import { signInPage } from "./sign-in.js";
import { Compare } from "./view/compare.js";
import { Conversations } from "./view/conversations.js";
import { Health } from "./view/health.js";
import { Live } from "./view/live.js";
import { Overview } from "./view/overview.js";
import { Person } from "./view/person.js";

/**
 * The views, in the order of the navigation; the first is the default. @type {Record<string, { title: string,
 * element: new () => import("./view/view.js").View, isOfPeriod: boolean }>}
 */
const VIEWS = {
  overview: { title: "Overview", element: Overview, isOfPeriod: true },
  compare: { title: "Compare", element: Compare, isOfPeriod: true },
  conversations: { title: "Conversations", element: Conversations, isOfPeriod: true },
  live: { title: "Live", element: Live, isOfPeriod: false },
  person: { title: "Person", element: Person, isOfPeriod: false },
  health: { title: "Health", element: Health, isOfPeriod: false },
};

export class Shell extends HTMLElement {
  #bar = make("header", { class: "bar" });
  #main = make("main", { id: "main", tabindex: -1 });
  /** @type {import("./view/view.js").View | null} */
  #view = null;

  connectedCallback() {
    session.addEventListener("change", () => this.#show());
    router.addEventListener("change", () => this.#show());
    this.#show();
  }

  #show() {
    const { caller, token } = session;
    if (caller === null || token === "") {
      this.#view = null;
      document.title = "Sign in · Hearback";
      this.replaceChildren(signInPage(router.current.project));
      return;
    }
    const route = this.#completed(caller);
    const { title, element } = VIEWS[route.view];
    document.title = [route.conversation, route.feedback, title, route.project, "Hearback"]
      .filter((each) => each !== "")
      .join(" · ");
    swap(this.#bar, ...this.#barOf(route, caller));
    if (!this.contains(this.#main)) {
      const skip = make("a", { class: "skip", href: "#main" }, "Skip to the content");
      // The fragment is for the token only, and no step of the history.
      openWithin(skip, () => this.#main.focus());
      this.replaceChildren(skip, this.#bar, this.#main);
    }
    if (!(this.#view instanceof element)) {
      this.#view = new element();
      this.#main.replaceChildren(this.#view);
    }
    this.#view.show(route);
  }

  /**
   * The route of the address, which is completed so that a copy of it shows the same.
   *
   * @param {import("./session.js").Caller} caller
   */
  #completed(caller) {
    const { current } = router;
    router.complete({
      view: current.view in VIEWS ? current.view : Object.keys(VIEWS)[0],
      project: current.project || caller.projects[0],
      ...periodOf(/** @type {import("./period.js").Period} */ (/** @type {unknown} */ (current))),
    });
    return router.current;
  }

  /** @param {import("./route.js").Route} route @param {import("./session.js").Caller} caller */
  #barOf(route, { sub, tenant, projects }) {
    const links = Object.entries(VIEWS).map(([view, { title }]) => {
      const link = make(
        "a",
        {
          id: `to-${view}`,
          href: router.address(router.to(view)),
          "aria-current": view === route.view ? "page" : null,
        },
        title,
      );
      openWithin(link, () => router.go(router.to(view)));
      return link;
    });
    // A link may be to a project that this token does not have.
    const options = [...new Set([route.project, ...projects])].sort();
    const project =
      options.length > 1
        ? select(
            { id: "project", label: "Project" },
            options.map((name) => [name, name]),
            route.project,
            (name) => router.goToWhole({ project: name, by: "", a: "", b: "" }),
          )
        : make("p", { class: "field" }, make("span", {}, "Project"), make("b", {}, route.project));
    const period = { from: route.from, to: route.to };
    return [
      make("p", { class: "brand" }, make("img", { src: ICON, alt: "", width: 22, height: 22 }), "Hearback"),
      make("nav", { "aria-label": "Views" }, ...links),
      make(
        "div",
        { class: "tools" },
        project,
        VIEWS[route.view].isOfPeriod ? periodPicker(period, (chosen) => router.goToWhole(chosen)) : null,
      ),
      button("Sign out", () => session.signOut(), {
        id: "sign-out",
        class: "quiet",
        title: `${sub} of ${tenant}`,
      }),
    ];
  }
}

customElements.define("console-shell", Shell);
