/** A field for a name, with a button. @module */

import { make } from "./dom.js";

/**
 * @param {{ id: string, label: string, submit: string } & import("./dom.js").Attributes} of the rest are attributes of
 *   the field
 * @param {(name: string) => void} find gets an empty name only if the field is not required
 */
export function searchForm({ id, label, submit, ...attributes }, find) {
  const field = make("input", {
    id,
    type: "search",
    maxlength: 256,
    autocomplete: "off",
    spellcheck: "false",
    ...attributes,
  });
  const form = make(
    "form",
    { class: "row", role: "search" },
    make("label", { class: "field", for: id }, make("span", {}, label), field),
    make("button", { type: "submit" }, submit),
  );
  form.addEventListener("submit", (/** @type {SubmitEvent} */ event) => {
    event.preventDefault();
    const name = field.value.trim();
    if (name !== "" || !attributes.required) {
      find(name);
    }
  });
  return form;
}
