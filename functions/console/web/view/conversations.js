/** The view of conversations: a list, the worst first, and one conversation with all feedback on it. @module */

import { tokenCommand } from "../command-line.js";
import { ConversationList } from "../conversation/list.js";
import { linkId, listPanel } from "../conversation/list-panel.js";
import { readConversation } from "../conversation/reading.js";
import { elementId, turnItem } from "../conversation/turn.js";
import { make } from "../dom.js";
import { counted, moment } from "../format.js";
import { command, emptyState } from "../panel.js";
import { link, personLink } from "../link.js";
import { router } from "../route.js";
import { searchForm } from "../search.js";
import { SCOPE, session } from "../session.js";
import { View, headingOf, noFeedback, viewHeading } from "./view.js";

/** For how long the way back to the list does not load it again. */
const LIST_KEPT_MS = 5 * 60_000;

/** @typedef {import("../route.js").Route} Route */

export class Conversations extends View {
  /** The list that was shown last. @type {{ key: string, list: ConversationList, at: number } | null} */
  #kept = null;
  /** @type {Route | null} */
  #shown = null;
  /** The conversation from which the reader may come back to the list. */
  #before = "";

  /** @param {Route} route @param {AbortSignal} signal */
  async load(route, signal) {
    return route.conversation ? this.#one(route, signal) : this.#all(route, signal);
  }

  /** @param {Route} route */
  async show(route) {
    const before = this.#shown;
    this.#shown = route;
    await super.show(route);
    if (this.#shown === route) {
      this.#lead(before, route);
    }
  }

  /**
   * Leads the reader to what they opened, or back to where they were.
   *
   * @param {Route | null} before
   * @param {Route} route
   */
  #lead(before, route) {
    const isSame = before?.conversation === route.conversation && before?.turn === route.turn;
    if (isSame || (before === null && !route.turn)) {
      return;
    }
    if (route.conversation) {
      const turn = route.turn ? document.getElementById(elementId(route.turn)) : null;
      const target = turn ?? this.querySelector("h1");
      target?.setAttribute("tabindex", "-1");
      target?.focus({ preventScroll: true });
      turn ? turn.scrollIntoView({ block: "nearest" }) : scrollTo(0, 0);
    } else if (before?.conversation) {
      const link = document.getElementById(linkId(before.conversation));
      link?.focus({ preventScroll: true });
      link?.scrollIntoView({ block: "center" });
    }
  }

  /** @param {Route} route @param {AbortSignal} signal */
  async #all(route, signal) {
    const { project, from, to } = route;
    const status = statusOf(route.status);
    const before = this.#before;
    this.#before = "";
    const key = [session.token, project, from, to, status].join("\n");
    const isBack = before !== "" && this.#kept?.key === key && Date.now() - this.#kept.at < LIST_KEPT_MS;
    const list =
      isBack && this.#kept ? this.#kept.list : new ConversationList({ project, period: { from, to }, status });
    if (!isBack) {
      await list.load(signal);
      this.#kept = { key, list, at: Date.now() };
    }
    const heading = viewHeading(this.name, { project, countedAt: null, from, to }, search());
    if (list.size === 0 && !list.hasMore && status === "") {
      return [heading, scopeNotice(project), noFeedback(route)].filter((node) => node !== null);
    }
    return [heading, scopeNotice(project), listPanel(list, before, signal)].filter((node) => node !== null);
  }

  /** @param {Route} route @param {AbortSignal} signal */
  async #one(route, signal) {
    const { project, conversation, turn } = route;
    this.#before = conversation;
    const { turns, isCut, isLedgerCut } = await readConversation({ project, conversation, turn }, signal);
    const heading = conversationHeading(route, turns);
    if (turns.length === 0) {
      return [heading, scopeNotice(project), unknown(conversation)].filter((node) => node !== null);
    }
    const notes = [
      isCut ? "The conversation has more turns than the console shows." : "",
      isLedgerCut ? "Of users with much feedback, ratings, corrections and what was taught may be missing." : "",
    ].filter((note) => note !== "");
    return [
      heading,
      scopeNotice(project),
      make("ol", { class: "turns" }, ...turns.map((each) => turnItem(each, turns, () => this.#reread(route, each.id)))),
      notes.length > 0 ? make("p", { class: "note" }, notes.join(" ")) : null,
    ].filter((node) => node !== null);
  }

  /** Shows the conversation again, with the focus on this turn. @param {Route} route @param {string} turn */
  async #reread(route, turn) {
    // The reader may have gone on meanwhile.
    if (this.#shown !== route) {
      return;
    }
    await this.show(route);
    document.getElementById(elementId(turn))?.focus();
  }

  get name() {
    return "Conversations";
  }

  get bones() {
    return [56, 520];
  }
}

/** @param {string} text @returns {import("../conversation/list.js").Status} */
function statusOf(text) {
  return text === "rejected" || text === "accepted" || text === "corrected" ? text : "";
}

/** Opens a conversation by its id. */
function search() {
  const of = {
    id: "find-conversation",
    label: "Conversation",
    submit: "Open",
    required: true,
    placeholder: "Exact id",
  };
  return searchForm(of, (conversation) => router.go({ conversation, turn: "" }));
}

/** @param {Route} route @param {import("../conversation/reading.js").Turn[]} turns */
function conversationHeading({ project, conversation }, turns) {
  const back = link({ conversation: "", turn: "" }, "All conversations", { id: "to-list" });
  const users = [...new Set(turns.map(({ log }) => log?.user_id).filter(Boolean))];
  const named = users.slice(0, 3).flatMap((user, index) => [index > 0 ? ", " : "", personLink(user)]);
  const facts = [
    [project],
    [...named, users.length > 3 ? " and others" : ""],
    [turns.length > 0 ? counted(turns.length, "turn") : ""],
  ].filter((fact) => fact.some((part) => part !== ""));
  const first = turns[0]?.ts;
  return headingOf({
    back,
    title: ["Conversation ", make("code", {}, conversation)],
    facts: [...facts.map((fact) => make("span", {}, ...fact)), first ? make("span", {}, moment(first)) : null],
  });
}

/** What a token without the scope sees. @param {string} project */
function scopeNotice(project) {
  const { caller } = session;
  return caller === null || caller.scopes.includes(SCOPE)
    ? null
    : make(
        "div",
        { class: "notice" },
        make(
          "p",
          {},
          make("strong", {}, `This token lacks the scope ${SCOPE}.`),
          ` It sees only the feedback of ${caller.sub}, and the texts of their own turns.`,
        ),
        command(tokenCommand(project)),
      );
}

/** @param {string} conversation */
function unknown(conversation) {
  return emptyState(
    "Nothing to show",
    make(
      "p",
      {},
      "There is no conversation ",
      make("code", {}, conversation),
      " in this project, or it is no longer kept.",
    ),
    make("p", { class: "note" }, "Ids are case-sensitive."),
  );
}

customElements.define("console-conversations", Conversations);
