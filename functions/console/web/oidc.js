/**
 * Signs in with OpenID Connect: the authorization code flow with PKCE, as a public client (docs/reference/console.md).
 * Between the two pages, the tab's storage keeps what belongs to the attempt; tokens are in memory only.
 *
 * @module
 */

import { SignInError } from "./session.js";

/** In the storage of the tab. */
const ATTEMPT = "hearback-sign-in";
/** Where the provider sends the user back to; it is registered there. */
const RETURN = `${location.origin}/console`;
const TIMEOUT_MS = 15_000;

/** @typedef {{ issuer: string, client: string, audience: string, scope: string }} Provider */
/** @typedef {{ access_token: string, refresh_token?: string }} Tokens */

/** The provider of a deployed stack; `null` if it has none. @returns {Provider | null} */
export function provider() {
  /** @type {HTMLMetaElement | null} */
  const meta = document.querySelector("meta[name='sign-in']");
  const { issuer = "", client = "", audience = "", scope = "" } = meta?.dataset ?? {};
  return issuer && client ? { issuer, client, audience, scope } : null;
}

/** Leaves the page for the provider's. @param {Provider} to */
export async function leave({ issuer, client, audience, scope }) {
  const { authorization_endpoint: endpoint } = await discovered(issuer);
  const [verifier, state] = [secret(), secret()];
  const address = location.pathname + location.search;
  sessionStorage.setItem(ATTEMPT, JSON.stringify({ verifier, state, address }));
  const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(verifier));
  const target = new URL(endpoint);
  const query = {
    response_type: "code",
    client_id: client,
    redirect_uri: RETURN,
    scope,
    state,
    code_challenge: base64url(new Uint8Array(digest)),
    code_challenge_method: "S256",
    ...audienceOf(audience),
  };
  for (const [name, value] of Object.entries(query)) {
    target.searchParams.set(name, value);
  }
  location.assign(target);
}

/** The parameters by which providers know for whom a token is. @param {string} audience @returns {Record<string, string>} */
function audienceOf(audience) {
  // RFC 8707 has an absolute URI; some providers have a name of their own for any text.
  return audience === "" ? {} : URL.canParse(audience) ? { audience, resource: audience } : { audience };
}

/**
 * The tokens of a user who comes back from the provider; `null` if nobody does. The address becomes what it was.
 *
 * @param {Provider} from
 * @returns {Promise<Tokens | null>}
 */
export async function arrive(from) {
  const query = new URLSearchParams(location.search);
  const [code, state, error] = ["code", "state", "error"].map((name) => query.get(name));
  if (state === null || (code === null && error === null)) {
    return null;
  }
  const attempt = JSON.parse(sessionStorage.getItem(ATTEMPT) ?? "null");
  sessionStorage.removeItem(ATTEMPT);
  history.replaceState(history.state, "", attempt?.address ?? "/console");
  // Somebody else may have made the user follow a link with a code of theirs.
  if (attempt === null || attempt.state !== state || (query.get("iss") ?? from.issuer) !== from.issuer) {
    throw new SignInError("This sign-in was not started in this tab. Sign in again.");
  }
  if (code === null) {
    throw new SignInError(`The identity provider refused: ${query.get("error_description") ?? error}`);
  }
  return requested(from, {
    grant_type: "authorization_code",
    code,
    redirect_uri: RETURN,
    code_verifier: attempt.verifier,
    ...audienceOf(from.audience),
  });
}

/** New tokens without the user. @param {Provider} from @param {string} refreshToken @returns {Promise<Tokens>} */
export function renewed(from, refreshToken) {
  return requested(from, { grant_type: "refresh_token", refresh_token: refreshToken, ...audienceOf(from.audience) });
}

/** @param {Provider} from @param {Record<string, string>} grant @returns {Promise<Tokens>} */
async function requested({ issuer, client }, grant) {
  const { token_endpoint: endpoint } = await discovered(issuer);
  const body = new URLSearchParams({ client_id: client, ...grant });
  const tokens = await asked(endpoint, { method: "POST", body });
  if (typeof tokens.access_token !== "string") {
    throw new SignInError("The identity provider issued no access token.");
  }
  return tokens;
}

/** What the provider says about itself. @param {string} issuer */
async function discovered(issuer) {
  const found = await asked(`${issuer.replace(/\/$/, "")}/.well-known/openid-configuration`, {});
  if (found.issuer !== issuer) {
    throw new SignInError("The identity provider does not have the issuer that this console expects.");
  }
  return found;
}

/** @param {string} address @param {RequestInit} request */
async function asked(address, request) {
  let response;
  let body;
  try {
    const signal = AbortSignal.timeout(TIMEOUT_MS);
    response = await fetch(address, { ...request, credentials: "omit", cache: "no-store", signal });
    body = await response.json();
  } catch {
    throw new SignInError("The identity provider cannot be reached, or does not allow this page to ask it (CORS).");
  }
  if (!response.ok) {
    throw new SignInError(
      `The identity provider refused: ${body?.error_description ?? body?.error ?? response.status}`,
    );
  }
  return body;
}

/** 256 random bits. */
function secret() {
  return base64url(crypto.getRandomValues(new Uint8Array(32)));
}

/** @param {Uint8Array} bytes */
function base64url(bytes) {
  return btoa(String.fromCharCode(...bytes))
    .replaceAll("+", "-")
    .replaceAll("/", "_")
    .replace(/=+$/, "");
}
