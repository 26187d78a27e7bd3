/** The versions of a user's preferences, each as what it changed, and the way back to one. @module */

import { changePreferences, preferenceHistory } from "../api.js";
import { button, make, swap } from "../dom.js";
import { counted, moment } from "../format.js";
import { failure, panel } from "../panel.js";
import { applies, changes, inWords, patch, valueText } from "./preferences.js";

const PAGE = 50;

/** @type {Record<string, string>} */
const CAUSES = { update: "Set", reset: "Reset", feedback: "Learned from feedback" };

/** @typedef {any} Version */

/**
 * @param {string} user
 * @param {(undone: string) => void} reload shows the view again, with what was done
 * @param {AbortSignal} signal
 */
export async function historyPanel(user, reload, signal) {
  /** @type {Version[]} */
  const versions = [];
  /** @type {number | undefined} */
  let next;
  const place = make("div", { class: "content" });
  const read = async () => {
    const page = await preferenceHistory(user, { limit: PAGE, before: next }, signal);
    versions.push(...page.versions);
    next = page.next;
  };
  const show = () => {
    const [current] = versions;
    // The oldest that is loaded may have one before it, which is needed to say what it changed.
    const shown = next === undefined ? versions : versions.slice(0, -1);
    const items = shown.map((version, index) =>
      item(version, versions[index + 1] ?? {}, index === 0 ? null : () => undo(current, version)),
    );
    const more = next === undefined ? null : button("Load more", load, { id: "more-versions" });
    swap(
      place,
      panel(
        { title: "History", note: `The latest first. Version ${current.preferenceVersion} applies.` },
        notice,
        make("ol", { class: "versions" }, ...items),
        more,
      ),
    );
  };
  const notice = make("div", { class: "done" });
  const fail = (/** @type {unknown} */ error) => {
    if (!signal.aborted) {
      notice.replaceChildren(failure(error, () => reload("")));
      notice.scrollIntoView({ block: "nearest" });
    }
  };
  const load = () => read().then(show, fail);
  const undo = async (/** @type {Version} */ current, /** @type {Version} */ version) => {
    const body = { ...patch(current, version), preferenceVersion: current.preferenceVersion };
    try {
      const changed = await changePreferences(user, body, signal);
      reload(`Version ${changed.preferenceVersion} has what was set in version ${version.preferenceVersion}.`);
    } catch (error) {
      fail(error);
    }
  };
  await read();
  show();
  return place;
}

/** @param {Version} version @param {Version} before @param {(() => void) | null} undo */
function item(version, before, undo) {
  const { preferenceVersion: number, cause, updatedAt } = version;
  const found = changes(before, version);
  const back = undo
    ? button("Go back to it", undo, { class: "quiet", "aria-label": `Go back to version ${number}` })
    : null;
  const lines = found.map(({ path, before: old, after }) =>
    make(
      "li",
      {},
      `${inWords(path[path.length - 1])} (${applies(path)}): `,
      make("del", {}, valueText(old)),
      " → ",
      make("ins", {}, valueText(after)),
    ),
  );
  const from = cause.feedbackIds?.length > 0 ? ` (${counted(cause.feedbackIds.length, "event")})` : "";
  return make(
    "li",
    {},
    make(
      "p",
      {},
      make("b", {}, `Version ${number}`),
      ` · ${CAUSES[cause.kind] ?? cause.kind}${from} · `,
      moment(updatedAt),
    ),
    lines.length > 0 ? make("ul", {}, ...lines) : make("p", { class: "note" }, "No value changed."),
    back,
  );
}
