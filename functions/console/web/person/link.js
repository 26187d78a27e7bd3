/** Links to the view of a user. @module */

import { make } from "../dom.js";
import { openWithin, router } from "../route.js";

/** @param {string} user */
export function personLink(user) {
  const to = { ...router.to("person"), user };
  const link = make("a", { href: router.address(to) }, user);
  openWithin(link, () => router.go(to));
  return link;
}
