/** Links within the page. @module */

import { make } from "./dom.js";
import { openWithin, router } from "./route.js";

/**
 * A link that changes settings of the address.
 *
 * @param {Partial<import("./route.js").Route>} changes
 * @param {string} text
 * @param {import("./dom.js").Attributes} [attributes]
 */
export function link(changes, text, attributes = {}) {
  const node = make("a", { ...attributes, href: router.address({ ...router.current, ...changes }) }, text);
  openWithin(node, () => router.go(changes));
  return node;
}

/** @param {string} user */
export function personLink(user) {
  return link({ ...router.to("person"), user }, user);
}
