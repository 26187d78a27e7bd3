/** The numbers that a reader wants first, each with its uncertainty, what it is of, and how it changed. @module */

import { make } from "../dom.js";
import { count, counted, percent, percentRange, points, pointsRange, users } from "../format.js";
import { change } from "../statistics.js";

const WORDS = { higher: "Higher", lower: "Lower", unclear: "No clear change" };
const ARROWS = { higher: "▲", lower: "▼", unclear: "" };

/** @typedef {{ label: string, value: string, range?: string, of: string, change: Node }} Card */

/**
 * @param {any} now the total of the period
 * @param {any} then the total of the period before
 * @param {number} days
 */
export function headline(now, then, days) {
  const hadFeedback = then.events > 0 || then.turns.registered > 0;
  const before = days === 1 ? "the day before" : `the ${days} days before`;
  const none = quiet(`Nothing was counted in ${before}`);
  const inCounts = (/** @type {string} */ text) => (hadFeedback ? quiet(`${text} in ${before}`) : none);
  const verdicts = now.accepted + now.rejected + now.neutral;
  return make(
    "dl",
    { class: "cards" },
    card({
      label: "Satisfaction",
      value: percent(now.byUser.satisfactionRate),
      range: rangeText(now.byUser),
      of: `${users(now.byUser)} with a verdict, each counted once`,
      change: changed(now.byUser, then.byUser, before),
    }),
    card({
      label: "Users with a verdict",
      value: count(now.byUser.users),
      of: `${counted(verdicts, "verdict")}: ${count(now.accepted)} for, ${count(now.rejected)} against, ${count(now.neutral)} neutral`,
      change: inCounts(count(then.byUser.users)),
    }),
    card({
      label: "Answers with explicit feedback",
      value: percent(now.turns.explicitShare),
      of: `${count(now.turns.explicit)} of ${counted(now.turns.registered, "answer")}; users who give none may think differently`,
      change: inCounts(percent(then.turns.explicitShare)),
    }),
    card({
      label: "Inferred satisfaction",
      value: percent(now.inferred.satisfactionRate),
      range: rangeText(now.inferred),
      of: `${counted(now.inferred.accepted + now.inferred.rejected + now.inferred.neutral, "inferred verdict")}, which no other number here includes`,
      change: changed(now.inferred, then.inferred, before),
    }),
  );
}

/** @param {Card} card */
function card({ label, value, range, of, change: node }) {
  const number = make("dd", {}, make("strong", {}, value), range ? make("span", { class: "range" }, range) : null);
  return make(
    "div",
    { class: "card" },
    make("dt", {}, label),
    number,
    make("dd", { class: "note" }, of),
    make("dd", {}, node),
  );
}

/** @param {import("../statistics.js").Rate} rate */
function rangeText({ satisfactionLow, satisfactionHigh }) {
  return satisfactionLow === null ? "" : `95\u202f% interval ${percentRange(satisfactionLow, satisfactionHigh)}`;
}

/** @param {string} text */
function quiet(text) {
  return make("span", { class: "note" }, text);
}

/** @param {import("../statistics.js").Rate} now @param {import("../statistics.js").Rate} then @param {string} before */
function changed(now, then, before) {
  const found = change(now, then);
  return found === null
    ? quiet(`No verdicts in ${before} to compare with`)
    : make("span", {}, changeText(found), quiet(` against ${before}`));
}

/** A change in words, with its interval. @param {import("../statistics.js").Change} change */
export function changeText({ difference, low, high, verdict }) {
  const word = make("b", { class: verdict }, `${ARROWS[verdict]} ${WORDS[verdict]}:`.trim());
  const title = `95 % interval of the difference: ${pointsRange(low, high)} points`;
  return make("span", { class: "change", title }, word, ` ${points(difference)} (${pointsRange(low, high)})`);
}
