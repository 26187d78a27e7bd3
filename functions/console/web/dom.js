/** Creates elements from data. Parses no HTML, so it works under Trusted Types. @module */

/** The address of the icon, which has a version like that of this module. */
export const ICON = new URL("icon.svg", import.meta.url).href;

const SVG = "http://www.w3.org/2000/svg";

/**
 * `true` sets an empty attribute; `false`, `null` and `undefined` set none.
 *
 * @typedef {Record<string, string | number | boolean | null | undefined>} Attributes
 */

/**
 * @template {Element} T
 * @param {T} node
 * @param {Attributes} attributes
 * @param {(Node | string | null | false | undefined)[]} children
 * @returns {T}
 */
function filled(node, attributes, children) {
  for (const [key, value] of Object.entries(attributes)) {
    if (value !== false && value !== null && value !== undefined) {
      node.setAttribute(key, value === true ? "" : String(value));
    }
  }
  node.append(...children.filter((child) => child !== null && child !== false && child !== undefined));
  return node;
}

/** An HTML element. @param {string} tag @param {Attributes} [attributes] @param {...any} children @returns {any} */
export function make(tag, attributes = {}, ...children) {
  return filled(document.createElement(tag), attributes, children);
}

/** An SVG element. @param {string} tag @param {Attributes} [attributes] @param {...any} children @returns {any} */
export function draw(tag, attributes = {}, ...children) {
  return filled(document.createElementNS(SVG, tag), attributes, children);
}

/**
 * A button that acts within the page.
 *
 * @param {string} text
 * @param {(event: Event) => void} act
 * @param {Attributes} [attributes]
 */
export function button(text, act, attributes = {}) {
  const node = make("button", { type: "button", ...attributes }, text);
  node.addEventListener("click", act);
  return node;
}

/**
 * A `<select>` with a label.
 *
 * @param {{ id: string, label: string }} name
 * @param {[value: string, text: string][]} options
 * @param {string} chosen
 * @param {(value: string) => void} choose
 */
export function select({ id, label }, options, chosen, choose) {
  const node = make(
    "select",
    { id },
    ...options.map(([value, text]) => make("option", { value, selected: value === chosen }, text)),
  );
  node.addEventListener("change", () => choose(node.value));
  return make("div", { class: "field" }, make("label", { for: id }, label), node);
}

/**
 * Buttons of which one is pressed.
 *
 * @param {{ id: string, label: string }} name
 * @param {[value: string, text: string][]} options
 * @param {string} chosen
 * @param {(value: string) => void} choose
 */
export function segments({ id, label }, options, chosen, choose) {
  const buttons = options.map(([value, text]) =>
    button(text, () => choose(value), { id: `${id}-${value}`, "aria-pressed": String(value === chosen) }),
  );
  return make("div", { class: "segments", role: "group", "aria-label": label }, ...buttons);
}

/**
 * Replaces the children of a node. The focus stays where it is, on the element with the same id, and so does what the
 * reader is typing there.
 *
 * @param {Element} parent
 * @param {...Node} children
 */
export function swap(parent, ...children) {
  const { activeElement } = document;
  const id = activeElement && parent.contains(activeElement) ? activeElement.id : "";
  const isTyping = activeElement instanceof HTMLInputElement && activeElement.value !== activeElement.defaultValue;
  parent.replaceChildren(...children);
  const successor = id ? document.getElementById(id) : null;
  successor?.focus({ preventScroll: true });
  if (isTyping && successor instanceof HTMLInputElement) {
    successor.value = activeElement.value;
  }
}
