/** Says that an inference is wrong, and what the message means instead. @module */

import { correctInference } from "../api.js";
import { button, make } from "../dom.js";
import { failure } from "../panel.js";
import { router } from "../route.js";
import { ON_BEHALF, session } from "../session.js";
import { takenBack } from "./ledger.js";
import { MEANINGS, withSign } from "./words.js";

/**
 * `null` if the reader may not correct it.
 *
 * @param {import("./reading.js").Turn} turn
 * @param {import("./reading.js").Inference} inference
 * @param {() => void} reload
 */
export function correctionOf({ id, log }, { status, detectedAt }, reload) {
  const { caller } = session;
  if (!caller?.scopes.includes(ON_BEHALF) && caller?.sub !== log.user_id) {
    return null;
  }
  const { project, conversation } = router.current;
  // The correction goes on if the reader leaves the view.
  const { signal } = new AbortController();
  const place = make("div", { class: "row" });
  const send = async (/** @type {string} */ meaning) => {
    for (const each of choices) {
      each.disabled = true;
    }
    try {
      const body = { feedback_type: meaning, detected_at: detectedAt };
      const { withdrawn } = await correctInference({ project, conversation, turn: id }, body, signal);
      withdrawn.forEach((/** @type {string} */ event) => takenBack.add(event));
      reload();
    } catch (error) {
      place.replaceChildren(failure(error, reload));
    }
  };
  const choices = Object.entries(MEANINGS)
    .filter(([meaning]) => meaning !== status)
    .map(([meaning, text]) => button(withSign(meaning, text), () => send(meaning)));
  place.append(...choices);
  return make(
    "details",
    {},
    make("summary", { id: `wrong-${id}` }, "That was wrong"),
    make("p", { class: "note" }, "What does the message say? The inference is taken back, with what it counted for."),
    place,
  );
}
