/** What views have in common: they load what an address asks for, and show that it fails or is empty. @module */

import { command, emptyState, failure, skeleton } from "../panel.js";
import { demoCommand, tokenCommand } from "../command-line.js";
import { make, swap } from "../dom.js";
import { moment, periodText } from "../format.js";
import { SCOPE, session } from "../session.js";
import { ApiError } from "../api.js";

export class View extends HTMLElement {
  #content = make("div", { class: "content" });
  #status = make("p", { class: "unseen", role: "status" });
  #loading = new AbortController();

  /** The heading while there is nothing else. */
  get name() {
    return "";
  }

  /** The scopes that its requests need. */
  get scopes() {
    return [SCOPE];
  }

  /** Heights of the placeholders. */
  get bones() {
    return [96, 340, 280];
  }

  /**
   * What the view shows.
   *
   * @param {import("../route.js").Route} _route
   * @param {AbortSignal} _signal
   * @returns {Promise<Node[]>}
   */
  async load(_route, _signal) {
    return [];
  }

  connectedCallback() {
    this.append(this.#status, this.#content);
  }

  disconnectedCallback() {
    this.#loading.abort();
  }

  /** Loads a route; what an earlier call still loads is aborted. @param {import("../route.js").Route} route */
  async show(route) {
    this.#loading.abort();
    this.#loading = new AbortController();
    const { signal } = this.#loading;
    this.setAttribute("aria-busy", "true");
    this.#status.textContent = "Loading…";
    if (!this.#content.hasChildNodes()) {
      this.#content.append(make("h1", {}, this.name), skeleton(this.bones));
    }
    try {
      const nodes = await this.load(route, signal);
      signal.throwIfAborted();
      swap(this.#content, ...nodes);
      this.#status.textContent = `${this.name} loaded.`;
    } catch (error) {
      if (signal.aborted) {
        return;
      }
      if (!(error instanceof ApiError)) {
        // A bug, whose stack a developer needs.
        console.error(error);
      }
      this.#status.textContent = "";
      swap(
        this.#content,
        make("h1", {}, this.name),
        failure(error, () => this.show(route), remedy(error, route.project, this.scopes)),
      );
    }
    this.removeAttribute("aria-busy");
  }
}

/** What a rejected token lacks. @param {unknown} error @param {string} project @param {string[]} needed scopes */
function remedy(error, project, needed) {
  if (!(error instanceof ApiError) || error.status !== 403 || session.caller === null) {
    return null;
  }
  const { scopes, projects } = session.caller;
  const lacks = [
    ...needed.filter((scope) => !scopes.includes(scope)).map((scope) => `the scope ${scope}`),
    projects.includes(project) ? "" : `the project ${project}`,
  ].filter((each) => each !== "");
  const lacking = lacks.length > 0 ? `The token lacks ${lacks.join(" and ")}. ` : "";
  return make(
    "div",
    {},
    make("p", {}, `${lacking}Sign in with a token that this command prints:`),
    command(tokenCommand(project, ...needed.filter((scope) => scope !== SCOPE))),
  );
}

/**
 * The heading of a view.
 *
 * @param {string} title
 * @param {{ from: string, to: string, countedAt: string | null, project: string }} of
 * @param {...Node} controls
 */
export function viewHeading(title, { from, to, countedAt, project }, ...controls) {
  const period = periodText({ from, to });
  const counted = countedAt ? make("span", {}, "counted ", moment(countedAt)) : null;
  const days = { title: "A day is counted from midnight to midnight in UTC" };
  const facts = [make("span", {}, project), make("span", days, `${period}, days in UTC`), counted];
  return headingOf({ title: [title], facts }, ...controls);
}

/**
 * A heading with a line below it.
 *
 * @param {{ back?: Node, title: (Node | string)[], facts: (Node | null)[] }} of `back` leads to what this is a part of
 * @param {...Node} controls
 */
export function headingOf({ back, title, facts }, ...controls) {
  return make(
    "div",
    { class: "view-heading" },
    make(
      "div",
      {},
      back ? make("p", { class: "back" }, back) : null,
      make("h1", {}, ...title),
      facts.length > 0 ? make("p", { class: "about" }, ...facts) : null,
    ),
    ...controls,
  );
}

/** @param {import("../route.js").Route} route */
export function noFeedback({ project, from, to }) {
  return emptyState(
    "No feedback yet",
    make(
      "p",
      {},
      "The project ",
      make("b", {}, project),
      ` has neither answers nor feedback from ${periodText({ from, to })}. Choose a longer period, or start here:`,
    ),
    make(
      "ul",
      {},
      make(
        "li",
        {},
        "See the console with a made-up month, which this command writes into the project:",
        command(demoCommand(project)),
      ),
      make(
        "li",
        {},
        "Show feedback buttons under your answers: ",
        guide("Show feedback on a page", "docs/how-to/show-feedback-on-a-page.md"),
      ),
      make(
        "li",
        {},
        "Register the answers of your chat bot, and submit feedback from your back end: ",
        guide("Connect your chat bot", "docs/how-to/chat-bot.md"),
      ),
      make("li", {}, "Import feedback that you have: ", guide("Import events", "docs/how-to/import-events.md")),
    ),
    make("p", { class: "note" }, "Changes are counted mostly within a minute."),
  );
}

/** A page of the documentation, which the server does not serve. @param {string} title @param {string} path */
function guide(title, path) {
  return make("span", {}, make("cite", {}, title), " (", make("code", {}, path), ")");
}
