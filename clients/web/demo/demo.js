/**
 * A conversation to try `<hearback-feedback>` on, against the bundle that serves this page.
 *
 * @module
 */
import { FeedbackClient, configure } from "/demo/hearback-feedback.js";

/**
 * @typedef {{ name: string, question: string, answer: string, other?: string, unknown?: boolean }} Turn
 * @typedef {{ sub: string, tenant: string, project: string }} Caller
 */

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
      "Then it does not know this message, and takes no feedback on it. Try a thumb: it goes back by itself, and you are told.",
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

/** Who a token is of. It is only read here; the server checks it. @param {string} token @returns {Caller} */
function callerOf(token) {
  const payload = token.split(".")[1].replaceAll("-", "+").replaceAll("_", "/");
  const bytes = Uint8Array.from(atob(payload), (char) => char.charCodeAt(0));
  const { sub, tenant, projects = [] } = JSON.parse(new TextDecoder().decode(bytes));
  if (!sub || !tenant || !projects[0]) {
    throw new Error("the token names no user, no tenant or no project");
  }
  return { sub, tenant, project: projects[0] };
}

/** The demo of one caller. */
class Demo {
  #token;
  #caller;
  #client;
  /** Messages on the page, in its order. @type {Map<string, string>} */
  #messages = new Map();
  /** Which reading of the rows is the newest: an older one that comes later is not shown. */
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
    page.who.textContent = `You are ${this.#caller.sub} of ${this.#caller.tenant}.`;
    page.who.hidden = false;
    page.main.hidden = false;
    await this.#showRows();
  }

  get #conversation() {
    return `demo-${this.#caller.sub}`;
  }

  /** With the project in it, so that the user's demo in another project is another. @param {string} name */
  #messageId(name) {
    return `${this.#conversation}-${this.#caller.project}-${name}`;
  }

  /** Registers a turn; again and again is the same as once. @param {string} name @param {string} question @param {string} answer */
  async #register(name, question, answer) {
    const { tenant, project } = this.#caller;
    const path = ["conversations", tenant, project, this.#conversation, "turns", name];
    const response = await fetch(`/${path.map(encodeURIComponent).join("/")}`, {
      method: "PUT",
      headers: { Authorization: `Bearer ${this.#token}`, "Content-Type": "application/json" },
      body: JSON.stringify({
        user: { text: question },
        assistant: { text: answer, message_id: this.#messageId(name) },
        trace_id: this.#trace(name),
      }),
    });
    if (!response.ok) {
      const problem = await response.json().catch(() => ({}));
      throw new Error(problem.detail ?? `the server answered ${response.status}`);
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
      make("hearback-feedback", { "chat-id": this.#conversation, "trace-id": this.#trace(turn.name) }, [text])
    );
    const name = await this.#current(turn);
    this.#place(feedback, turn, name);
    if (turn.other) {
      feedback.addEventListener("hearback-regenerate", () => this.#regenerate(feedback, turn));
    }
    return make("article", {}, [make("p", { class: "question" }, [turn.question]), feedback]);
  }

  /** An answer that was regenerated stays so over a reload. @param {Turn} turn */
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
      page.problem.textContent = `No other answer could be had: ${/** @type {Error} */ (error).message}`;
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
      // The elements tell of it; what was read last stays.
    }
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
    page.problem.textContent = `This token does not open the demo: ${/** @type {Error} */ (error).message}`;
    page.signIn.hidden = false;
  }
}

page.signIn.addEventListener("submit", (event) => {
  event.preventDefault();
  location.hash = new URLSearchParams({ token: page.token.value.trim() }).toString();
});
addEventListener("hashchange", () => location.reload());

await open();
