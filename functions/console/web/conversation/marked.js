/** Texts with the words of a cue marked. @module */

import { button, make } from "../dom.js";

/** A longer text is cut, until its reader asks for all of it. */
const MAX_SHOWN = 4000;

/** @typedef {import("./reading.js").Cue} Cue */

/**
 * The words at a position. A character is a code point, which a string of JavaScript may have two units for.
 *
 * @param {string} text
 * @param {Cue} cue
 */
export function wordsAt(text, { start, end }) {
  return [...text].slice(start, end).join("");
}

/** @param {string} text @param {Cue[]} cues @returns {HTMLElement} */
export function markedText(text, cues) {
  const characters = [...text];
  const last = Math.max(0, ...cues.map(({ end }) => end));
  const node = make("p", { class: "said" });
  const show = (/** @type {number} */ length) => {
    node.replaceChildren(...parts(characters.slice(0, length), cues));
    if (characters.length > length) {
      const rest = button("Show all of it", () => show(characters.length), { class: "quiet" });
      node.append("… ", rest);
    }
  };
  show(Math.max(MAX_SHOWN, last));
  return node;
}

/** @param {string[]} characters @param {Cue[]} cues @returns {(Node | string)[]} */
function parts(characters, cues) {
  /** @type {(Node | string)[]} */
  const found = [];
  let at = 0;
  for (const { start, end } of cues.toSorted((a, b) => a.start - b.start)) {
    if (start >= at && end > start) {
      found.push(characters.slice(at, start).join(""), make("mark", {}, characters.slice(start, end).join("")));
      at = end;
    }
  }
  return [...found, characters.slice(at).join("")];
}
