/**
 * What charts over time have in common: the axis, and a crosshair that reads values to eyes and screen readers.
 *
 * @module
 */

import { draw, make } from "../dom.js";
import { intervalText, tick } from "../format.js";
import { timeTicks } from "./scale.js";

const LEFT = 44;
const TOP = 12;
const AXIS = 26;
const LEAST_RIGHT = 12;
/** The last label moves to the left as far as it would be cut off. */
const HALF_LABEL = 20;

/**
 * @typedef {{
 *   intervals: { start: number, end: number }[],
 *   kind: "hour" | "day" | "week",
 *   summary: string,
 *   title: string,
 *   read: (index: number) => { look: string, name: string, value: string }[],
 * }} TimeModel `summary` is what a screen reader says of the chart, `read` what is shown of one interval
 * @typedef {{ left: number, right: number, top: number, bottom: number, band: number, x: (index: number) => number }} Frame
 */

/**
 * A chart whose subclass draws the marks. It is drawn anew when its width changes, so that text keeps its size.
 *
 * @template {TimeModel} Model
 */
export class TimeChart extends HTMLElement {
  /** @type {Model | null} */
  #model = null;
  #width = 0;
  /** The interval under the crosshair, or −1. */
  #chosen = -1;
  /** @type {Frame | null} */
  #frame = null;
  #observer = new ResizeObserver(() => this.#resized());
  #plot = make("div", { class: "plot" });
  #readout = make("div", { class: "readout", hidden: true });
  #slider = make("div", {
    class: "crosshair",
    role: "slider",
    tabindex: 0,
    "aria-valuemin": 0,
    "aria-orientation": "horizontal",
  });
  #line = draw("line", { class: "crosshair-line" });

  /** Height in pixels, with the axis. */
  get height() {
    return 240;
  }

  /** Width in pixels to the right of the marks. @param {Model} _model */
  rightOf(_model) {
    return LEAST_RIGHT;
  }

  /** @param {Frame} _frame @param {Model} _model @returns {Node[]} */
  marks(_frame, _model) {
    return [];
  }

  connectedCallback() {
    this.#slider.addEventListener("pointermove", (/** @type {PointerEvent} */ event) =>
      this.#choose(this.#under(event)),
    );
    this.#slider.addEventListener("pointerdown", (/** @type {PointerEvent} */ event) =>
      this.#choose(this.#under(event)),
    );
    this.#slider.addEventListener("pointerleave", () => this.#choose(-1));
    this.#slider.addEventListener("blur", () => this.#choose(-1));
    this.#slider.addEventListener("focus", () => this.#slider.matches(":focus-visible") && this.#choose(this.#last));
    this.#slider.addEventListener("keydown", (/** @type {KeyboardEvent} */ event) => this.#key(event));
    this.replaceChildren(this.#plot, this.#slider, this.#readout);
    this.#observer.observe(this);
  }

  disconnectedCallback() {
    this.#observer.disconnect();
  }

  /** @param {Model} model */
  show(model) {
    this.#model = model;
    this.#chosen = -1;
    this.#slider.setAttribute("aria-label", `Read the values: ${model.title}`);
    this.#slider.setAttribute("aria-valuemax", String(this.#last));
    this.#describe(this.#last);
    this.#width = 0;
    this.#resized();
    return this;
  }

  get #last() {
    return (this.#model?.intervals.length ?? 0) - 1;
  }

  #resized() {
    if (this.#model !== null && this.clientWidth > 0 && this.clientWidth !== this.#width) {
      this.#width = this.clientWidth;
      this.#draw(this.#model);
    }
  }

  /** @param {Model} model */
  #draw(model) {
    const { height } = this;
    const right = this.#width - this.rightOf(model);
    const band = (right - LEFT) / Math.max(1, model.intervals.length);
    const frame = {
      left: LEFT,
      right,
      top: TOP,
      bottom: height - AXIS,
      band,
      x: (/** @type {number} */ index) => LEFT + (index + 0.5) * band,
    };
    this.#frame = frame;
    const labels = timeTicks(model.intervals, model.kind, right - LEFT).map((index) =>
      draw(
        "text",
        {
          x: Math.min(frame.x(index), this.#width - HALF_LABEL),
          y: height - 7,
          class: "tick",
          "text-anchor": "middle",
        },
        tick(model.intervals[index].start, model.kind),
      ),
    );
    const size = { width: this.#width, height, viewBox: `0 0 ${this.#width} ${height}` };
    const svg = draw(
      "svg",
      { ...size, role: "img", "aria-label": model.summary },
      ...labels,
      this.#line,
      ...this.marks(frame, model),
    );
    this.#plot.replaceChildren(svg);
    this.#slider.style.insetInlineStart = `${LEFT}px`;
    this.#slider.style.inlineSize = `${right - LEFT}px`;
    this.#slider.style.blockSize = `${height - AXIS}px`;
    this.#choose(-1);
  }

  /** @param {PointerEvent} event */
  #under(event) {
    const band = this.#frame?.band ?? 1;
    return Math.min(this.#last, Math.max(0, Math.floor(event.offsetX / band)));
  }

  /** @param {KeyboardEvent} event */
  #key(event) {
    const at = this.#chosen < 0 ? this.#last : this.#chosen;
    const moved = {
      ArrowLeft: at - 1,
      ArrowDown: at - 1,
      ArrowRight: at + 1,
      ArrowUp: at + 1,
      Home: 0,
      End: this.#last,
    }[event.key];
    if (moved !== undefined) {
      event.preventDefault();
      this.#choose(Math.min(this.#last, Math.max(0, moved)));
    } else if (event.key === "Escape") {
      this.#choose(-1);
    }
  }

  /** @param {number} index */
  #describe(index) {
    const interval = this.#model?.intervals[index];
    if (this.#model && interval) {
      const read = this.#model.read(index).map(({ name, value }) => `${name}: ${value}`);
      this.#slider.setAttribute("aria-valuenow", String(index));
      this.#slider.setAttribute("aria-valuetext", `${intervalText(interval, this.#model.kind)}. ${read.join(". ")}`);
    }
  }

  /** Places the crosshair. @param {number} index −1 removes it */
  #choose(index) {
    this.#chosen = index;
    const interval = this.#model?.intervals[index];
    const frame = this.#frame;
    this.#readout.hidden = !interval;
    this.#line.toggleAttribute("hidden", !interval);
    if (!interval || !frame || !this.#model) {
      return;
    }
    this.#describe(index);
    const x = frame.x(index);
    for (const [key, value] of Object.entries({ x1: x, x2: x, y1: frame.top, y2: frame.bottom })) {
      this.#line.setAttribute(key, String(value));
    }
    const rows = this.#model
      .read(index)
      .flatMap(({ look, name, value }) => [make("dt", {}, swatch(look), name), make("dd", {}, value)]);
    this.#readout.replaceChildren(
      make("strong", {}, intervalText(interval, this.#model.kind)),
      make("dl", {}, ...rows),
    );
    const width = this.#readout.offsetWidth;
    const isLeft = x + 14 + width > this.#width;
    const left = isLeft ? Math.max(0, x - 14 - width) : x + 14;
    this.#readout.style.insetInlineStart = `${left}px`;
  }
}

/** The mark of a series. Its shape differs, too, as colours may look alike. @param {string} look */
export function swatch(look) {
  return draw(
    "svg",
    { class: `swatch look-${look}`, viewBox: "0 0 12 12", "aria-hidden": "true" },
    mark(look, 6, 6, 4.5),
  );
}

/** @param {string} look @param {number | string} x @param {number} y @param {number} size */
export function mark(look, x, y, size) {
  switch (look) {
    case "b":
      return draw("rect", {
        class: "mark",
        x: Number(x) - size * 0.85,
        y: y - size * 0.85,
        width: size * 1.7,
        height: size * 1.7,
        transform: `rotate(45 ${x} ${y})`,
      });
    case "explicit":
    case "implicit":
    case "correction":
      return draw("rect", {
        class: "area",
        x: Number(x) - size,
        y: y - size,
        width: size * 2,
        height: size * 2,
        rx: 1.5,
      });
    default:
      return draw("circle", { class: "mark", cx: x, cy: y, r: size });
  }
}

/**
 * The ticks of a value axis, with a line across the chart for each; that of 0 is the base.
 *
 * @param {number[]} ticks
 * @param {Frame} frame
 * @param {(value: number) => number} y
 * @param {(value: number) => string} text
 */
export function gridLines(ticks, frame, y, text) {
  return ticks.flatMap((value) => [
    draw("line", {
      class: value === 0 ? "base" : "grid",
      x1: frame.left,
      x2: frame.right,
      y1: y(value),
      y2: y(value),
    }),
    draw("text", { class: "tick", x: frame.left - 8, y: y(value) + 4, "text-anchor": "end" }, text(value)),
  ]);
}
