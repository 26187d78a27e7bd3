/** What feedback is compared by: a property of turns and events, or a label. @module */

import { make, select } from "./dom.js";

const LABEL = /^label\.[A-Za-z0-9_.-]{1,64}$/;

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

/** What to show first: the usual dimension if it has values, or else another. @param {string[]} present @param {string} usual */
export function firstDimension(present, usual) {
  return present.includes(usual) ? usual : (sorted(present)[0] ?? usual);
}

/** @param {string[]} present */
function sorted(present) {
  const known = Object.keys(NAMES);
  return [...known.filter((by) => present.includes(by)), ...present.filter((by) => !known.includes(by))];
}

/** @param {string} by @param {string[]} present dimensions with values @param {(by: string) => void} choose */
export function dimensionPicker(by, present, choose) {
  const all = [...new Set([...sorted(present), by])];
  return select(
    { id: "by", label: "By" },
    all.map((each) => [each, dimensionName(each)]),
    by,
    choose,
  );
}
