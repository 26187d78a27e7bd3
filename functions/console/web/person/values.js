/** The preferences that apply, with where each value came from. @module */

import { resolvedPreferences } from "../api.js";
import { make } from "../dom.js";
import { tablePanel } from "../panel.js";
import { applies, entries, inWords, isStatistic, valueText } from "./preferences.js";

/** Of more artifact types or contexts, the sources are not read. */
const MAX_SOURCES = 20;

/** @typedef {import("./preferences.js").Entry & { source: string }} Row */

/**
 * @param {string} user
 * @param {import("./preferences.js").Preferences} current
 * @param {AbortSignal} signal
 */
export async function valuesPanel(user, current, signal) {
  const of = (/** @type {string} */ key, /** @type {object | undefined} */ named) =>
    Object.keys(named ?? {})
      .slice(0, MAX_SOURCES)
      .map(async (name) => [name, (await resolvedPreferences(user, { [key]: name }, signal)).source]);
  const [{ source }, artifacts, contexts] = await Promise.all([
    resolvedPreferences(user, {}, signal),
    Promise.all(of("artifactType", current.artifactPreferences)),
    Promise.all(of("taskType", current.contextPreferences)),
  ]);
  /** @type {Record<string, Record<string, any>>} */
  const sources = {
    artifactPreferences: Object.fromEntries(artifacts),
    contextPreferences: Object.fromEntries(contexts),
  };
  const rows = entries(current).map(({ path, value }) => {
    const [kind, of, name] = path;
    const found = path.length === 2 ? source[of] : sources[kind][of]?.[name];
    return { path, value, source: isStatistic(path) ? "learned" : (found ?? "") };
  });
  const title = "Preferences";
  return tablePanel(
    { title, note: "What an application reads before its next answer. What the user set outranks what was learned." },
    { caption: title, file: `${user}-preferences`, columns: COLUMNS, rows },
  );
}

/** @type {import("../table.js").Column<Row>[]} */
const COLUMNS = [
  { title: "Preference", value: ({ path }) => inWords(path[path.length - 1]) },
  { title: "For", value: ({ path }) => applies(path) },
  { title: "Value", value: ({ value }) => valueText(value), show: ({ value }) => make("b", {}, valueText(value)) },
  { title: "Where it came from", value: ({ source }) => (source === "user" ? "set by the user" : source) },
];
