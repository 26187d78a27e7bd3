/**
 * Who uses the console: the token, in memory only, and its claims.
 *
 * @module
 */

/** The scope of the views about a project. */
export const SCOPE = "feedback:report";
/** The scope that reads and changes what belongs to a user. */
export const ON_BEHALF = "feedback:on-behalf";
/** The scope that erases a user. */
export const ADMIN = "feedback:admin";
/** The scope that operates the deployment. */
export const OPERATE = "feedback:operate";

/** Header, payload and signature. */
const TOKEN = /^[\w-]+\.[\w-]+\.[\w-]+$/;

/**
 * @typedef {{ sub: string, tenant: string, projects: string[], scopes: string[], expires: number }} Caller `expires`
 *   in ms
 */

/** Why a token is not accepted, in words for its user. */
export class SignInError extends Error {}

/** @param {string} token */
function claimsOf(token) {
  try {
    if (!TOKEN.test(token)) {
      throw new TypeError("not a JSON Web Token");
    }
    const payload = token.split(".")[1].replaceAll("-", "+").replaceAll("_", "/");
    const bytes = Uint8Array.from(atob(payload), (char) => char.charCodeAt(0));
    return JSON.parse(new TextDecoder().decode(bytes)) ?? {};
  } catch {
    throw new SignInError("This is not a token, or only a part of one. Copy the whole last line of the command.");
  }
}

/** The forms of the claim: a list, a list as JSON text, one name (docs/reference/tokens.md). @param {unknown} claim */
function projectsOf(claim) {
  let projects = claim;
  if (typeof projects === "string" && projects.startsWith("[")) {
    try {
      projects = JSON.parse(projects);
    } catch {
      // A project may have such a name.
    }
  }
  const list = Array.isArray(projects) ? projects : [projects];
  return list.filter((project) => typeof project === "string" && project !== "");
}

/** What a token says about its caller; the server verifies it. @param {string} token @returns {Caller} */
function callerOf(token) {
  const { sub, tenant, projects, scope, exp } = claimsOf(token);
  if (typeof sub !== "string" || typeof tenant !== "string" || !sub || !tenant) {
    throw new SignInError("This token names no user or no tenant.");
  }
  const caller = {
    sub,
    tenant,
    projects: projectsOf(projects),
    scopes: typeof scope === "string" ? scope.split(" ") : [],
    expires: typeof exp === "number" ? exp * 1000 : Infinity,
  };
  if (caller.expires <= Date.now()) {
    throw new SignInError("This token has expired.");
  }
  if (caller.projects.length === 0) {
    throw new SignInError("This token is for no project.");
  }
  return caller;
}

class Session extends EventTarget {
  #token = "";
  /** Who is signed in, or was last. @type {Caller | null} */
  caller = null;
  /** Why nobody is signed in, for the sign-in page. */
  reason = "";

  get token() {
    return this.#token;
  }

  /** @param {string} token @throws {SignInError} */
  signIn(token) {
    this.caller = callerOf(token.trim());
    this.#token = token.trim();
    this.reason = "";
    this.dispatchEvent(new Event("change"));
  }

  /** Replaces a token that expires by another one of the same user. Nothing is shown again. @param {string} token */
  renew(token) {
    this.caller = callerOf(token);
    this.#token = token;
  }

  /** @param {string} [reason] */
  signOut(reason = "") {
    this.#token = "";
    this.reason = reason;
    this.dispatchEvent(new Event("change"));
  }

  /** Signs in with the token in the address, if there is one, and removes it from there first. */
  signInFromAddress() {
    const token = new URLSearchParams(location.hash.slice(1)).get("token");
    if (token === null) {
      return;
    }
    history.replaceState(history.state, "", location.pathname + location.search);
    try {
      this.signIn(token);
    } catch (error) {
      this.signOut(error instanceof SignInError ? error.message : String(error));
    }
  }
}

export const session = new Session();
