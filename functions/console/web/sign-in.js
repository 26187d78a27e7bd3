/** The page of a reader who is not signed in. @module */

import { tokenCommand } from "./command-line.js";
import { ICON, button, make } from "./dom.js";
import { leave, provider } from "./oidc.js";
import { command } from "./panel.js";
import { SCOPE, SignInError, session } from "./session.js";

/** @param {string} project of the address; "" if it names none */
export function signInPage(project) {
  const problem = make("p", { class: "notice", role: "alert" }, session.reason);
  const field = make("input", {
    id: "token",
    type: "password",
    autocomplete: "off",
    spellcheck: "false",
    required: true,
    "aria-describedby": "token-hint",
  });
  const form = make(
    "form",
    {},
    make("label", { for: "token" }, "Token"),
    make("p", { id: "token-hint", class: "note" }, `A token with the scope ${SCOPE}.`),
    make("div", { class: "row" }, field, make("button", { type: "submit", class: "primary" }, "Sign in")),
  );
  form.addEventListener("submit", (/** @type {SubmitEvent} */ event) => {
    event.preventDefault();
    try {
      session.signIn(field.value);
    } catch (error) {
      if (!(error instanceof SignInError)) {
        throw error;
      }
      problem.textContent = error.message;
      field.focus();
    }
  });
  const from = provider();
  const withToken = [
    form,
    make("h2", {}, "Where to get a token"),
    make(
      "p",
      {},
      "For a bundle on your machine, this command prints one; it is the last line. ",
      make("code", {}, "hearback token --help"),
      " explains the options. In AWS, your identity provider issues it.",
    ),
    command(tokenCommand(project)),
    make(
      "p",
      { class: "note" },
      "Or open the link to the console that ",
      make("code", {}, "hearback"),
      " prints when it starts. The console keeps the token in the memory of this page only: after a reload, paste it or open the link again. This address keeps the view.",
    ),
  ];
  return make(
    "main",
    { class: "sign-in" },
    make("h1", {}, make("img", { src: ICON, alt: "", width: 28, height: 28 }), "Hearback console"),
    problem,
    ...(from === null
      ? withToken
      : [withProvider(from, problem), make("details", {}, make("summary", {}, "Sign in with a token"), ...withToken)]),
  );
}

/** @param {import("./oidc.js").Provider} from @param {HTMLElement} problem */
function withProvider(from, problem) {
  const start = button(
    "Sign in",
    async () => {
      start.disabled = true;
      try {
        await leave(from);
      } catch (error) {
        if (!(error instanceof SignInError)) {
          throw error;
        }
        problem.textContent = error.message;
        start.disabled = false;
      }
    },
    { class: "primary", id: "sign-in" },
  );
  const note = "The token stays in the memory of this page. After a reload, sign in again; the address keeps the view.";
  return make("div", {}, start, make("p", { class: "note" }, note));
}
