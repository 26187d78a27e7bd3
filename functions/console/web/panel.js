/** Parts that all views consist of: panels, notices, skeletons. @module */

import { button, make } from "./dom.js";
import { saveButton, tableElement } from "./table.js";

/**
 * A titled part of a view.
 *
 * @param {{ title: string, note?: Node | string, controls?: Node[] }} heading
 * @param {...(Node | null)} content
 */
export function panel({ title, note, controls = [] }, ...content) {
  const text = make("div", {}, make("h2", {}, title), note ? make("p", { class: "note" }, note) : null);
  const head = make("header", {}, text, make("div", { class: "controls" }, ...controls));
  return make("section", { class: "panel", "aria-label": title }, head, ...content);
}

/**
 * A panel with a chart, and with its numbers as a table, which is always there for screen readers.
 *
 * @param {{ title: string, note?: Node | string, controls?: Node[] }} heading
 * @param {Node} chart
 * @param {import("./table.js").Table<any>} table
 * @param {...Node} more
 */
export function chartPanel({ controls = [], ...heading }, chart, table, ...more) {
  const region = tableElement(table);
  const reveal = (/** @type {boolean} */ isShown) => {
    region.classList.toggle("unseen", !isShown);
    // Nobody could see the focus in it.
    region.tabIndex = isShown ? 0 : -1;
    toggle.setAttribute("aria-pressed", String(isShown));
  };
  const toggle = button("Table", () => reveal(toggle.getAttribute("aria-pressed") !== "true"), {
    class: "quiet",
    "aria-label": `Table: ${heading.title}`,
    title: "Show the numbers as a table",
  });
  reveal(false);
  return panel({ ...heading, controls: [...controls, toggle, saveButton(table)] }, chart, ...more, region);
}

/**
 * A panel with a table that contains its own plot.
 *
 * @param {{ title: string, note?: Node | string, controls?: Node[] }} heading
 * @param {import("./table.js").Table<any>} table
 * @param {...Node} more
 */
export function tablePanel({ controls = [], ...heading }, table, ...more) {
  return panel({ ...heading, controls: [...controls, saveButton(table)] }, tableElement(table), ...more);
}

/**
 * What a failed request means, and what can be done.
 *
 * @param {unknown} error
 * @param {() => void} again
 * @param {Node | null} [remedy]
 */
export function failure(error, again, remedy = null) {
  const message = error instanceof Error ? error.message : String(error);
  const details = /** @type {{ details?: string[] }} */ (error).details ?? [];
  return make(
    "div",
    { class: "notice", role: "alert" },
    make("p", {}, make("strong", {}, message)),
    details.length > 0 ? make("ul", {}, ...details.map((detail) => make("li", {}, detail))) : null,
    remedy,
    button("Try again", again),
  );
}

/** What to do where there is nothing to show. @param {string} title @param {...(Node | string)} content */
export function emptyState(title, ...content) {
  return make("section", { class: "panel empty", "aria-label": title }, make("h2", {}, title), ...content);
}

/** A command line that can be copied. @param {string} line */
export function command(line) {
  const copy = button("Copy", async () => {
    try {
      await navigator.clipboard.writeText(line);
      copy.textContent = "Copied";
    } catch {
      getSelection()?.selectAllChildren(code);
      copy.textContent = "Selected";
    }
  });
  copy.setAttribute("aria-label", `Copy the command ${line.split(" ").slice(0, 2).join(" ")}`);
  const code = make("code", { tabindex: 0, role: "group", "aria-label": "Command" }, line);
  return make("div", { class: "command" }, code, copy);
}

/** Placeholders until the first response. @param {number[]} heights of panels, in pixels */
export function skeleton(heights) {
  const bones = heights.map((height) => {
    const bone = make("div", { class: "bone" });
    bone.style.blockSize = `${height}px`;
    return bone;
  });
  return make("div", { class: "skeleton" }, make("p", { class: "unseen", role: "status" }, "Loading…"), ...bones);
}
