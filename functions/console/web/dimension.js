/** What feedback is compared by: a property of turns and events, or a label. @module */

import { button, make, select } from "./dom.js";

const LABEL = /^label\.[A-Za-z0-9_.-]{1,64}$/;
const ANOTHER = "another";

/**
 * Dimensions and what one of their values is called; the labels are those that the documentation uses. @type
 * {Record<string, string>}
 */
const NAMES = {
  taskType: "Task type",
  "label.model": "Model",
  "label.prompt_version": "Prompt version",
  agentId: "Agent",
  strategy: "Strategy",
  artifactType: "Artifact type",
};

/** The dimension of an address. @param {string} by @param {string} otherwise */
export function dimensionOf(by, otherwise) {
  return by in NAMES || LABEL.test(by) ? by : otherwise;
}

/** @param {string} by */
export function dimensionName(by) {
  return NAMES[by] ?? `Label ${by.slice("label.".length)}`;
}

/** Where the values come from, for those who see none. @param {string} by */
export function dimensionSource(by) {
  return by.startsWith("label.")
    ? make("span", {}, "the label ", make("code", {}, by.slice("label.".length)), " in ", make("code", {}, "labels"))
    : make("code", {}, by);
}

/** @param {string} by @param {(by: string) => void} choose */
export function dimensionPicker(by, choose) {
  const known = Object.entries(NAMES).map(([value, name]) => /** @type {[string, string]} */ ([value, name]));
  const own = by in NAMES ? [] : [/** @type {[string, string]} */ ([by, dimensionName(by)])];
  const key = make("input", {
    type: "text",
    required: true,
    pattern: "[A-Za-z0-9_.\\-]{1,64}",
    title: "A to Z, a to z, 0 to 9, “_”, “.” and “-”",
    autocomplete: "off",
    spellcheck: "false",
    size: 14,
  });
  const form = make(
    "form",
    { class: "row", hidden: true },
    make("label", { class: "field" }, make("span", {}, "Label"), key),
    make("button", { type: "submit" }, "Show"),
    button(
      "Cancel",
      () => {
        form.hidden = true;
        list.value = by;
        list.focus();
      },
      { class: "quiet" },
    ),
  );
  form.addEventListener("submit", (/** @type {SubmitEvent} */ event) => {
    event.preventDefault();
    choose(`label.${key.value}`);
  });
  const field = select({ id: "by", label: "By" }, [...known, ...own, [ANOTHER, "Another label…"]], by, (value) => {
    form.hidden = value !== ANOTHER;
    if (value === ANOTHER) {
      key.focus();
    } else {
      choose(value);
    }
  });
  const list = /** @type {HTMLSelectElement} */ (field.querySelector("select"));
  return make("div", { class: "row" }, field, form);
}
