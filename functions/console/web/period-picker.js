/** Chooses a period: the last days, or two dates. @module */

import { button, make, segments } from "./dom.js";
import { periodText } from "./format.js";
import { PRESETS, last, objection, today } from "./period.js";

/** @param {import("./period.js").Period} period @param {(period: import("./period.js").Period) => void} choose */
export function periodPicker(period, choose) {
  const preset = PRESETS.find((days) => last(days).from === period.from && last(days).to === period.to);
  const presets = segments(
    { id: "last", label: "Period" },
    PRESETS.map((days) => [String(days), `${days} days`]),
    String(preset ?? ""),
    (days) => choose(last(Number(days))),
  );
  return make("div", { class: "period" }, presets, custom(period, choose));
}

/**
 * A button with the dates, which opens a form.
 *
 * @param {import("./period.js").Period} period
 * @param {(period: import("./period.js").Period) => void} choose
 */
function custom(period, choose) {
  const input = (/** @type {string} */ value) => make("input", { type: "date", value, max: today(), required: true });
  const from = input(period.from);
  const to = input(period.to);
  const problem = make("p", { role: "alert", class: "problem" });
  const form = make(
    "form",
    { id: "custom-period", hidden: true, novalidate: true },
    make("label", { class: "field" }, make("span", {}, "First day"), from),
    make("label", { class: "field" }, make("span", {}, "Last day"), to),
    make("p", { class: "note" }, "Days are counted in UTC."),
    problem,
    make("button", { type: "submit", class: "primary" }, "Show"),
  );
  const opener = button(periodText(period), () => open(form.hidden), {
    id: "period",
    "aria-expanded": "false",
    "aria-controls": "custom-period",
    title: "Choose other days",
  });
  const open = (/** @type {boolean} */ isOpen) => {
    form.hidden = !isOpen;
    opener.setAttribute("aria-expanded", String(isOpen));
    if (isOpen) {
      from.focus();
    }
  };
  form.addEventListener("submit", (/** @type {SubmitEvent} */ event) => {
    event.preventDefault();
    const chosen = { from: from.value, to: to.value };
    problem.textContent = objection(chosen);
    if (problem.textContent === "") {
      open(false);
      opener.focus();
      choose(chosen);
    }
  });
  const box = make("div", { class: "custom" }, opener, form);
  box.addEventListener("keydown", (/** @type {KeyboardEvent} */ event) => {
    if (event.key === "Escape" && !form.hidden) {
      open(false);
      opener.focus();
    }
  });
  box.addEventListener("focusout", (/** @type {FocusEvent} */ event) => {
    // A click on the form's own text focuses nothing.
    if (event.relatedTarget instanceof Node && !box.contains(event.relatedTarget)) {
      open(false);
    }
  });
  return box;
}
