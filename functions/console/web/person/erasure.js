/** Erasing a user, after a confirmation, and its progress (docs/reference/erasure.md). @module */

import { erase, erasure, ifFound } from "../api.js";
import { tokenCommand } from "../command-line.js";
import { button, make, swap } from "../dom.js";
import { counted, moment } from "../format.js";
import { command, failure, panel } from "../panel.js";
import { ADMIN, ON_BEHALF, session } from "../session.js";
import { passed } from "../wait.js";

const EVERY_MS = 2_000;

/** @type {Record<string, string>} */
const REMOVED = {
  events: "event",
  turns: "turn",
  reactions: "reaction",
  signals: "message signal",
  preferenceVersions: "version of preferences",
  exportRows: "row of exports",
  importFiles: "imported file",
  rejectedLines: "rejected line",
};
/** @type {Record<string, string>} */
const PLURALS = { preferenceVersions: "versions of preferences", exportRows: "rows of exports" };

/** @param {string} user @param {string} project @param {AbortSignal} signal */
export async function erasurePanel(user, project, signal) {
  const title = "Erase";
  const { caller } = session;
  if (!caller?.scopes.includes(ADMIN) && caller?.sub !== user) {
    const text = `Erasing a person needs a token with the scope ${ADMIN}:`;
    return panel({ title, note: text }, command(tokenCommand(project, ON_BEHALF, ADMIN)));
  }
  const place = make("div", { class: "content" });
  const show = (/** @type {any} */ state) => swap(place, panel({ title, note: NOTE }, ...stateOf(state), start));
  const start = button("Erase this person…", () => dialog.showModal(), { id: "erase", class: "danger" });
  const dialog = confirmation(user, () => follow(erase(user, signal)));
  const follow = async (/** @type {Promise<any>} */ begun) => {
    start.disabled = true;
    try {
      await watch(await begun);
    } catch (error) {
      if (!signal.aborted) {
        swap(
          place,
          panel(
            { title, note: NOTE },
            failure(error, () => show(null)),
          ),
        );
      }
    }
    start.disabled = false;
  };
  const watch = async (/** @type {any} */ state) => {
    show(state);
    while (state?.status !== "done" && (await passed(EVERY_MS, signal))) {
      state = await erasure(user, signal);
      show(state);
    }
  };
  const state = await ifFound(erasure(user, signal));
  show(state);
  if (state !== null && state.status !== "done") {
    follow(Promise.resolve(state));
  }
  return make("div", { class: "content" }, place, dialog);
}

const NOTE =
  "Removes everything that is stored about this person: events, turns, reactions, preferences, and the rows of exports that derive from them. It cannot be undone.";

/** @param {any} state of an erasure, or `null` */
function stateOf(state) {
  if (state === null) {
    return [];
  }
  const removed = Object.entries(state.removed)
    .filter(([, number]) => number > 0)
    .map(([kind, number]) => counted(number, REMOVED[kind] ?? kind, PLURALS[kind]));
  const isDone = state.status === "done";
  return [
    make(
      "p",
      { role: "status" },
      make("strong", {}, isDone ? "Erased. " : "Being erased. "),
      "Requested ",
      moment(state.requestedAt),
      isDone ? ", finished " : ".",
      isDone ? moment(state.finishedAt) : "",
    ),
    make("p", {}, removed.length > 0 ? `Removed: ${removed.join(", ")}.` : "Nothing was removed so far."),
    isDone
      ? null
      : make("p", { class: "note" }, "In AWS this takes at least half an hour. It goes on without this page."),
  ].filter((node) => node !== null);
}

/** @param {string} user @param {() => void} confirm */
function confirmation(user, confirm) {
  const field = make("input", { id: "erase-user", autocomplete: "off", spellcheck: "false", required: true });
  const submit = make("button", { type: "submit", class: "danger", disabled: true }, "Erase");
  field.addEventListener("input", () => (submit.disabled = field.value !== user));
  const form = make(
    "form",
    {},
    make("h2", { id: "erase-title" }, `Erase ${user}?`),
    make("p", {}, "All data of this person is removed. It cannot be undone."),
    make("label", { for: "erase-user" }, "Type the user’s id to confirm"),
    field,
    make(
      "div",
      { class: "row" },
      submit,
      button("Cancel", () => dialog.close()),
    ),
  );
  form.addEventListener("submit", (/** @type {SubmitEvent} */ event) => {
    event.preventDefault();
    if (field.value === user) {
      dialog.close();
      confirm();
    }
  });
  const dialog = make("dialog", { "aria-labelledby": "erase-title" }, form);
  dialog.addEventListener("close", () => {
    field.value = "";
    submit.disabled = true;
  });
  return dialog;
}
