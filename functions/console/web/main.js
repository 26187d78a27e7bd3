/** Starts the console. @module */

import { hatch } from "./chart/columns.js";
import { arrive, provider, renewed } from "./oidc.js";
import { SignInError, session } from "./session.js";
import { Shell } from "./shell.js";

/** A token is renewed so long before it expires, or after half of its time if that is shorter. */
const EARLY_MS = 60_000;
/** The longest time that a timer can wait. */
const MAX_MS = 2 ** 31 - 1;

/** Signs in a user who comes back from the provider. */
async function arrived() {
  const from = provider();
  if (from === null) {
    return;
  }
  try {
    const tokens = await arrive(from);
    if (tokens !== null) {
      session.signIn(tokens.access_token);
      keep(from, tokens);
    }
  } catch (error) {
    session.signOut(reasonOf(error));
  }
}

/**
 * Renews the token as long as the user stays signed in with it.
 *
 * @param {import("./oidc.js").Provider} from
 * @param {import("./oidc.js").Tokens} tokens
 */
function keep(from, { access_token: token, refresh_token: refreshToken }) {
  const left = (session.caller?.expires ?? Infinity) - Date.now();
  if (refreshToken === undefined) {
    return;
  }
  const renew = async () => {
    if (session.token !== token) {
      return;
    }
    try {
      const tokens = await renewed(from, refreshToken);
      session.renew(tokens.access_token);
      keep(from, { refresh_token: refreshToken, ...tokens });
    } catch (error) {
      // The token is valid for some time. After that, the server rejects it, and the user signs in again.
      console.info(reasonOf(error));
    }
  };
  setTimeout(renew, Math.min(Math.max(left - EARLY_MS, left / 2), MAX_MS));
}

/** @param {unknown} error */
function reasonOf(error) {
  if (error instanceof SignInError) {
    return error.message;
  }
  throw error;
}

session.signInFromAddress();
// A link with another token that is opened in this tab changes only the fragment.
addEventListener("hashchange", () => session.signInFromAddress());
arrived().then(() => document.body.append(hatch(), new Shell()));
