/**
 * A demo of `<hearback-feedback>` against the bundle that serves this page.
 *
 * @module
 */
import { FeedbackClient, HearbackError, configure } from "/demo/hearback-feedback.js";
import { followFeed } from "/demo/hearback-live.js";

/**
 * @typedef {{ name: string, question: string, answer: string, other?: string, unknown?: boolean }} Turn
 * @typedef {{ sub: string, tenant: string }} Caller
 */

/** The only project that this page writes to. `infra/local/src/demo.rs` has the same constant. */
const PROJECT = "hearback-demo";

/** @type {Turn[]} */
const TURNS = [
  {
    name: "1",
    question: "Our CI takes 40 minutes. Where do I start?",
    answer:
      "Measure before you change anything: let each step print when it began, and look at the three slowest over a week. In most pipelines those are dependency downloads, a build that starts from nothing, and one test suite that waits for the others. Cache the first, split the last, and leave the rest alone.",
  },
  {
    name: "2",
    question: "Give me a commit message for a fix of a double charge.",
    answer:
      "Charge a card once when a payment is retried\n\nThe retry drew a new idempotency key, so the provider took it for another payment. The key now comes from the order.",
    other:
      "Reuse the idempotency key of a payment\n\nA retried payment was charged twice: its key was random. It is now derived from the order's id.",
  },
  {
    name: "3",
    question: "How many days does February have in 2028?",
    answer: "February 2028 has 28 days. 2028 is not a leap year, because it cannot be divided by 400.",
  },
  {
    name: "unregistered",
    question: "And what if you never told the server about an answer?",
    answer:
      "Then it has no record of the answer and accepts no feedback on it. Try a thumb: it is reset, and a message says why.",
    unknown: true,
  },
];

const page = {
  who: element("who"),
  problem: element("problem"),
  signIn: /** @type {HTMLFormElement} */ (element("sign-in")),
  token: /** @type {HTMLInputElement} */ (element("token")),
  main: element("page"),
  conversation: element("conversation"),
  rows: element("rows"),
  none: element("none"),
  feedState: element("feed-state"),
  events: element("events"),
};

/** How many events the page shows. */
const SHOWN_EVENTS = 20;

/** @type {Record<import("../hearback-live.js").FeedState, string>} */
const FEED_STATES = {
  connecting: "Connecting…",
  open: "Your events, the latest first, as they are published.",
  waiting: "The connection was lost. The next attempt is soon.",
  closed: "This page does not receive events.",
};

/** @param {string} id */
function element(id) {
  return /** @type {HTMLElement} */ (document.getElementById(id));
}

/**
 * @param {string} tag
 * @param {Record<string, string>} [attributes]
 * @param {(Node | string)[]} [children]
 */
function make(tag, attributes = {}, children = []) {
  const node = document.createElement(tag);
  for (const [key, value] of Object.entries(attributes)) {
    node.setAttribute(key, value);
  }
  node.append(...children);
  return node;
}

/** Why the demo does not open, in words for its user. */
class DemoError extends Error {}

/** Header, payload and signature. */
const TOKEN = /^[\w-]+\.[\w-]+\.[\w-]+$/;

/** The claims of a token, which the server verifies. @param {string} token */
function claimsOf(token) {
  try {
    if (!TOKEN.test(token)) {
      throw new TypeError("not a JSON Web Token");
    }
    const payload = token.split(".")[1].replaceAll("-", "+").replaceAll("_", "/");
    const bytes = Uint8Array.from(atob(payload), (char) => char.charCodeAt(0));
    return JSON.parse(new TextDecoder().decode(bytes)) ?? {};
  } catch {
    throw new DemoError("it is not a token of Hearback, or only a part of one. Copy the whole link.");
  }
}

/** The user and tenant of a token. @param {string} token @returns {Caller} */
function callerOf(token) {
  const { sub, tenant, projects } = claimsOf(token);
  if (typeof sub !== "string" || typeof tenant !== "string" || !sub || !tenant) {
    throw new DemoError("it names no user or no tenant.");
  }
  if (!Array.isArray(projects) || !projects.includes(PROJECT)) {
    throw new DemoError(
      `it is not for the project ${PROJECT}, the only one that this page writes to. Make one with ` +
        `hearback token --sub ${sub} --tenant ${tenant} --projects ${PROJECT}`,
    );
  }
  return { sub, tenant };
}

/** @param {Response} response */
async function rejection(response) {
  if (response.status === 401) {
    return new DemoError("the server did not accept it. It may have expired, or be for another data folder.");
  }
  const problem = await response.json().catch(() => null);
  return new DemoError(problem?.detail ?? `the server responded with ${response.status}.`);
}

/** The demo of one caller. */
class Demo {
  #token;
  #caller;
  #client;
  /** Questions by message id, in the order of the page. @type {Map<string, string>} */
  #messages = new Map();
  /** Number of the latest read: an earlier one that finishes later is not shown. */
  #reading = 0;

  /** @param {string} token @param {Caller} caller */
  constructor(token, caller) {
    this.#token = token;
    this.#caller = caller;
    this.#client = new FeedbackClient({ token });
  }

  async start() {
    for (const turn of TURNS) {
      if (!turn.unknown) {
        await this.#register(turn.name, turn.question, turn.answer);
      }
    }
    configure({ token: this.#token });
    for (const turn of TURNS) {
      page.conversation.append(await this.#shown(turn));
    }
    page.conversation.addEventListener("hearback-change", () => this.#showRows());
    page.who.textContent =
      `You are ${this.#caller.sub} of ${this.#caller.tenant}. ` +
      `This page writes to the project ${PROJECT} and to no other.`;
    page.who.hidden = false;
    page.main.hidden = false;
    followFeed({
      token: this.#token,
      filter: { projectId: PROJECT },
      onEvent: (event) => this.#showEvent(event),
      onState: (state) => {
        page.feedState.textContent = FEED_STATES[state];
        page.feedState.dataset.state = state;
      },
    });
    await this.#showRows();
  }

  /**
   * Each answer is in a conversation of its own: otherwise each question would be read as implicit feedback on the answer
   * before it.
   *
   * @param {string} name
   */
  #conversation(name) {
    return `demo-${this.#caller.sub}-${name}`;
  }

  /** @param {string} name */
  #messageId(name) {
    return `demo-${this.#caller.sub}-${PROJECT}-${name}`;
  }

  /** Registers a turn. Can be repeated. @param {string} name @param {string} question @param {string} answer */
  async #register(name, question, answer) {
    const path = ["conversations", this.#caller.tenant, PROJECT, this.#conversation(name), "turns", name];
    const response = await fetch(`/${path.map(encodeURIComponent).join("/")}`, {
      method: "PUT",
      headers: { Authorization: `Bearer ${this.#token}`, "Content-Type": "application/json" },
      body: JSON.stringify({
        user: { text: question },
        assistant: { text: answer, message_id: this.#messageId(name) },
        trace_id: this.#trace(name),
      }),
    }).catch(() => {
      throw new DemoError("the server cannot be reached.");
    });
    if (!response.ok) {
      throw await rejection(response);
    }
  }

  /** @param {string} name */
  #trace(name) {
    return `demo-trace-${name}`;
  }

  /** @param {Turn} turn */
  async #shown(turn) {
    const text = make("p", {}, [turn.answer]);
    const feedback = /** @type {import("../hearback-feedback.js").HearbackFeedback} */ (
      make("hearback-feedback", {}, [text])
    );
    const name = await this.#current(turn);
    this.#place(feedback, turn, name);
    if (turn.other) {
      feedback.addEventListener("hearback-regenerate", () => this.#regenerate(feedback, turn));
    }
    return make("article", {}, [make("p", { class: "question" }, [turn.question]), feedback]);
  }

  /** After a reload, shows a regenerated answer again. @param {Turn} turn */
  async #current(turn) {
    if (!turn.other) {
      return turn.name;
    }
    const rows = await this.#client.list(this.#messageId(turn.name));
    this.#messages.set(this.#messageId(turn.name), turn.question);
    return rows.some(({ signal }) => signal === "regenerate") ? `${turn.name}-other` : turn.name;
  }

  /** @param {import("../hearback-feedback.js").HearbackFeedback} feedback @param {Turn} turn @param {string} name */
  #place(feedback, turn, name) {
    const isOther = name !== turn.name;
    const text = /** @type {HTMLElement} */ (feedback.firstElementChild);
    text.textContent = isOther ? (turn.other ?? "") : turn.answer;
    this.#messages.set(this.#messageId(name), turn.question);
    feedback.setAttribute("chat-id", this.#conversation(name));
    feedback.setAttribute("trace-id", this.#trace(name));
    feedback.toggleAttribute("regenerate", Boolean(turn.other) && !isOther);
    feedback.messageId = this.#messageId(name);
  }

  /** @param {import("../hearback-feedback.js").HearbackFeedback} feedback @param {Turn} turn */
  async #regenerate(feedback, turn) {
    const name = `${turn.name}-other`;
    try {
      await this.#register(name, turn.question, turn.other ?? "");
      this.#place(feedback, turn, name);
      await this.#showRows();
    } catch (error) {
      page.problem.textContent = `There is no other answer: ${explained(error)}`;
    }
  }

  async #showRows() {
    this.#reading += 1;
    const reading = this.#reading;
    try {
      const ids = [...this.#messages.keys()];
      const rows = (await Promise.all(ids.map((id) => this.#client.list(id)))).flat();
      if (reading === this.#reading) {
        page.none.hidden = rows.length > 0;
        page.rows.replaceChildren(...rows.map((row) => this.#row(row)));
      }
    } catch {
      // The elements show the error; keep the last rows.
    }
  }

  /** @param {import("../hearback-live.js").FeedEvent} event */
  #showEvent(event) {
    const time = make("time", { datetime: event.publishedAt, class: "quiet" }, [
      ` ${new Date(event.publishedAt).toLocaleTimeString()}`,
    ]);
    const item = make("li", {}, [make("strong", {}, [event.eventType]), time, make("div", {}, [summary(event)])]);
    item.dataset.event = event.eventType;
    page.events.prepend(item);
    page.events.children[SHOWN_EVENTS]?.remove();
  }

  /** @param {import("../hearback-feedback.js").FeedbackRow} row */
  #row(row) {
    const children = [
      make("strong", {}, [row.signal]),
      make("span", { class: "quiet" }, [` on “${this.#messages.get(row.message_id) ?? row.message_id}”`]),
    ];
    if (row.reason) {
      children.push(make("q", {}, [row.reason]));
    }
    const item = make("li", {}, children);
    item.dataset.signal = row.signal;
    item.dataset.message = row.message_id;
    return item;
  }
}

/** What an event says, in a few words. @param {import("../hearback-live.js").FeedEvent} event */
function summary({ outcome, feedbackChannel, reason, reward, policyUpdate, explorationHint }) {
  const part = (/** @type {unknown} */ value, /** @type {string} */ text) => (value === undefined ? [] : [text]);
  return [
    ...part(feedbackChannel, `${feedbackChannel}`),
    ...part(outcome, `${outcome}`),
    ...part(reason, `${reason}`),
    ...part(reward, `reward ${Object(reward).value}`),
    ...part(policyUpdate, `policy: ${Object(policyUpdate).adjustmentType}`),
    ...part(explorationHint, `exploration: ${Object(explorationHint).reason}`),
  ].join(", ");
}

/** A message for the user; details of unexpected errors go to the console. @param {unknown} error */
function explained(error) {
  if (error instanceof DemoError || error instanceof HearbackError) {
    return error.message;
  }
  console.error("hearback demo:", error);
  return "the page failed. See the browser's console.";
}

/** The fragment is not sent to the server. */
function tokenOfAddress() {
  return new URLSearchParams(location.hash.slice(1)).get("token");
}

async function open() {
  const token = tokenOfAddress();
  if (!token) {
    page.signIn.hidden = false;
    page.token.focus();
    return;
  }
  try {
    await new Demo(token, callerOf(token)).start();
  } catch (error) {
    page.problem.textContent = `This token does not open the demo: ${explained(error)}`;
    page.signIn.hidden = false;
    page.token.focus();
  }
}

page.signIn.addEventListener("submit", (event) => {
  event.preventDefault();
  location.hash = new URLSearchParams({ token: page.token.value.trim() }).toString();
});
addEventListener("hashchange", () => location.reload());

await open();
