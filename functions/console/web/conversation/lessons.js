/** The learning signals of a feedback act, in words (docs/reference/rules.md#learning-signals). @module */

import { make } from "../dom.js";

const NUMBER = new Intl.NumberFormat("en", { maximumFractionDigits: 2 });
const SIGNED = new Intl.NumberFormat("en", { maximumFractionDigits: 2, signDisplay: "exceptZero" });

/** @type {Record<string, string>} */
const ADJUSTMENTS = {
  weight_boost: "More weight for",
  weight_decay: "Less weight for",
  feature_add: "Add",
  feature_remove: "Remove",
};

/** @param {any[]} signals */
export function lessons(signals) {
  if (signals.length === 0) {
    return null;
  }
  const reward = signals.find((signal) => signal.reward)?.reward;
  const summary = reward ? `Taught: reward ${signed(reward.value)}` : "What it taught";
  return make("details", {}, make("summary", {}, summary), lessonsOf(signals));
}

/** @param {any[]} signals */
export function lessonsOf(signals) {
  return make("dl", { class: "lessons" }, ...signals.flatMap(lesson));
}

/** @param {any} signal */
function lesson({ reward, policyUpdate, explorationHint }) {
  if (reward) {
    return pair("Reward", `${signed(reward.value)}, with a confidence of ${NUMBER.format(reward.confidence)}`);
  }
  if (policyUpdate) {
    const { adjustmentType, featureVector } = policyUpdate;
    const features = Object.entries(featureVector).map(([feature, size]) =>
      make("li", {}, make("code", {}, feature), ` ${NUMBER.format(size)}`),
    );
    return pair(ADJUSTMENTS[adjustmentType] ?? adjustmentType, make("ul", {}, ...features));
  }
  return explorationHint ? pair("Exploration", explorationHint.reason) : [];
}

/** @param {string} term @param {Node | string} text */
function pair(term, text) {
  return [make("dt", {}, term), make("dd", {}, text)];
}

/** @param {number} value */
export function signed(value) {
  return SIGNED.format(value).replace("-", "−");
}
