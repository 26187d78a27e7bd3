/** Commands of the command line that the console recommends, ready to be pasted. @module */

import { SCOPE, session } from "./session.js";

/** @param {string} word */
function quoted(word) {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}

/** Prints a token for the console. @param {string} project "" for those of the last token @param {...string} scopes */
export function tokenCommand(project, ...scopes) {
  const { caller } = session;
  const projects = project || caller?.projects.join(",") || "PROJECT";
  const claims = {
    sub: caller?.sub ?? "analyst",
    tenant: caller?.tenant ?? "acme",
    projects,
    scope: [SCOPE, ...scopes].join(" "),
  };
  const options = Object.entries(claims).map(([name, value]) => `--${name} ${quoted(value)}`);
  return `hearback token ${options.join(" ")}`;
}

/** Fills a project with a month of made-up feedback. @param {string} project */
export function demoCommand(project) {
  return `hearback demo --tenant ${quoted(session.caller?.tenant ?? "acme")} --project ${quoted(project)}`;
}
