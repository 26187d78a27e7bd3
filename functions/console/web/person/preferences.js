/** Preferences as lists of values, and their differences. @module */

/**
 * A version of the preferences, or the current ones.
 *
 * @typedef {{ artifactPreferences?: Record<string, any>, contextPreferences?: Record<string, any>,
 *   globalPreferences?: Record<string, any> }} Preferences
 */
/** @typedef {{ path: string[], value: unknown }} Entry `path` has the kind, the artifact type or context if any, and the name. */
/** @typedef {{ path: string[], before: unknown, after: unknown }} Change `undefined` where there is no value. */

const KINDS = /** @type {const} */ (["globalPreferences", "artifactPreferences", "contextPreferences"]);
/** What only feedback changes. */
const LEARNED = ["averageRating", "acceptanceRate", "sampleCount"];

/** @param {Preferences} preferences @returns {Entry[]} */
export function entries(preferences) {
  return KINDS.flatMap((kind) => {
    const values = Object.entries(preferences[kind] ?? {});
    return kind === "globalPreferences"
      ? values.map(([name, value]) => ({ path: [kind, name], value }))
      : values.flatMap(([of, named]) =>
          Object.entries(named).map(([name, value]) => ({ path: [kind, of, name], value })),
        );
  });
}

/** Whether a value is a statistic, which nobody can set. @param {string[]} path */
export function isStatistic(path) {
  return LEARNED.includes(path[path.length - 1]);
}

/** @param {Preferences} before @param {Preferences} after @returns {Change[]} */
export function changes(before, after) {
  const [old, now] = [before, after].map(
    (each) => new Map(entries(each).map(({ path, value }) => [JSON.stringify(path), value])),
  );
  return [...new Set([...old.keys(), ...now.keys()])]
    .filter((key) => JSON.stringify(old.get(key)) !== JSON.stringify(now.get(key)))
    .map((key) => ({ path: JSON.parse(key), before: old.get(key), after: now.get(key) }));
}

/**
 * The merge patch that leads from one version to another, as far as a user can set values.
 *
 * @param {Preferences} from
 * @param {Preferences} to
 */
export function patch(from, to) {
  /** @type {any} */
  const result = {};
  for (const { path, after } of changes(from, to).filter((change) => !isStatistic(change.path))) {
    let place = result;
    for (const key of path.slice(0, -1)) {
      place = place[key] ??= {};
    }
    place[path[path.length - 1]] = after ?? null;
  }
  return result;
}

/** "Preferred format", as people read it. @param {string} name */
export function inWords(name) {
  const words = name.replace(/([A-Z])/g, (letter) => ` ${letter.toLowerCase()}`);
  return words.charAt(0).toUpperCase() + words.slice(1);
}

/** Whom a value is for. @param {string[]} path */
export function applies(path) {
  return path.length === 2 ? "Everywhere" : path[1];
}

/** @param {unknown} value */
export function valueText(value) {
  if (value === undefined || value === null) {
    return "not set";
  }
  if (typeof value === "number") {
    return new Intl.NumberFormat("en", { maximumFractionDigits: 2 }).format(value);
  }
  if (typeof value === "boolean") {
    return value ? "on" : "off";
  }
  return Array.isArray(value) ? value.join(", ") : String(value);
}
