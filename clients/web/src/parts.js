/** Builds the shadow tree of an element. @module */

import { icon } from "./style.js";

/**
 * Creates an element with attributes and children. Parses no HTML, so it works under Trusted Types.
 *
 * @template {keyof HTMLElementTagNameMap} T
 * @param {T} tag
 * @param {Record<string, string>} [attributes]
 * @param {(Node | string)[]} [children]
 * @returns {HTMLElementTagNameMap[T]}
 */
function make(tag, attributes = {}, children = []) {
  const node = document.createElement(tag);
  for (const [key, value] of Object.entries(attributes)) {
    node.setAttribute(key, value);
  }
  node.append(...children);
  return node;
}

/** @param {string} part @param {string} look @param {Node[]} [children] */
function button(part, look, children = []) {
  return make("button", { type: "button", class: look, part: `button ${part}` }, children);
}

/** The nodes of a shadow tree. */
export function parts() {
  return {
    slot: make("slot"),
    group: make("div", { class: "row toolbar", part: "toolbar", role: "group" }),
    up: button("helpful", "icon", [icon("up")]),
    down: button("not-helpful", "icon", [icon("down")]),
    edit: button("edit", "", [icon("edit")]),
    editText: make("span"),
    regenerate: button("regenerate", "", [icon("again")]),
    regenerateText: make("span"),
    detailsToggle: button("details", "", [icon("open")]),
    detailsText: make("span"),
    details: make("div", { id: "details", class: "details", part: "reasons", role: "group" }),
    chips: make("div", { class: "row", part: "chips" }),
    reason: make("form", { class: "reason", part: "reason" }),
    reasonLabel: make("label", { for: "reason", part: "reason-label" }),
    reasonInput: make("input", { id: "reason", part: "reason-input", type: "text", autocomplete: "off" }),
    sendReason: make("button", { type: "submit", class: "outlined", part: "button send-reason" }),
    edited: make("section", { class: "edited", part: "edited" }),
    editedTitle: make("div", { id: "edited", class: "title" }),
    removeEdit: button("remove-edit", ""),
    editedText: make("p", { part: "edited-text" }),
    editor: make("form", { class: "editor", part: "editor" }),
    editorLabel: make("label", { for: "textarea" }),
    textarea: make("textarea", { id: "textarea", part: "textarea", "aria-describedby": "hint count" }),
    hint: make("span", { id: "hint", class: "quiet" }),
    count: make("span", { id: "count", part: "count" }),
    cancel: button("cancel", "end"),
    save: make("button", { type: "submit", class: "primary", part: "button save" }),
    error: make("div", { class: "error", part: "error" }),
    // Present from the start: screen readers ignore a live region that is added with its text.
    errorText: make("span", { role: "alert" }),
    retry: button("retry", "outlined"),
    dismiss: button("dismiss", "icon", [icon("close")]),
    notice: make("div", { class: "notice", part: "notice" }),
    status: make("span", { role: "status" }),
    undo: button("undo", "outlined"),
  };
}

/** @param {ReturnType<typeof parts>} ui */
export function assembled(ui) {
  ui.edit.append(ui.editText);
  ui.regenerate.append(ui.regenerateText);
  ui.detailsToggle.prepend(ui.detailsText);
  ui.detailsToggle.setAttribute("aria-controls", "details");
  // Last, so that nothing moves when it appears, and next to what it opens.
  ui.group.append(ui.up, ui.down, ui.edit, ui.regenerate, ui.detailsToggle);
  ui.reason.append(ui.reasonLabel, make("div", { class: "line" }, [ui.reasonInput, ui.sendReason]));
  ui.details.append(ui.chips, ui.reason);
  ui.edited.setAttribute("aria-labelledby", "edited");
  ui.removeEdit.id = "remove";
  ui.removeEdit.setAttribute("aria-labelledby", "remove edited");
  ui.edited.append(
    make("div", { class: "row" }, [ui.editedTitle, ui.removeEdit]),
    ui.editedText,
  );
  ui.editor.append(
    ui.editorLabel,
    ui.textarea,
    make("div", { class: "row" }, [ui.hint, ui.count, ui.cancel, ui.save]),
  );
  ui.error.append(ui.errorText, ui.retry, ui.dismiss);
  ui.notice.append(ui.status, ui.undo);
  const frame = make("div", { class: "feedback frame", part: "feedback" }, [
    ui.edited,
    ui.editor,
    ui.group,
    ui.details,
    ui.notice,
    ui.error,
  ]);
  return [ui.slot, frame];
}
