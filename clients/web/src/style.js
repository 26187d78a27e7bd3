/** Style sheet and icons of an element. @module */

const STYLE = `
:host {
  --_accent: var(--hearback-accent, light-dark(#0b57a4, #a9c9f5));
  --_on-accent: var(--hearback-on-accent, light-dark(#ffffff, #0a2540));
  --_danger: var(--hearback-danger, light-dark(#8c1d18, #f9dedc));
  --_danger-surface: var(--hearback-danger-surface, light-dark(#fceeee, #601410));
  --_line: var(--hearback-line, color-mix(in srgb, currentColor 50%, transparent));
  --_hover: var(--hearback-hover, color-mix(in srgb, currentColor 10%, transparent));
  --_surface: var(--hearback-surface, light-dark(#ffffff, #1b1e23));
  --_on-surface: var(--hearback-on-surface, light-dark(#1b1e23, #eceff3));
  --_radius: var(--hearback-radius, 0.5rem);
  --_size: var(--hearback-size, 2.125rem);
  display: block;
  /* Allows a grid or flex item to become narrower than its content. */
  min-inline-size: 0;
  max-inline-size: 100%;
}
:host([hidden]), [hidden] { display: none !important; }
.feedback {
  font: var(--hearback-font, inherit);
  font-size: var(--hearback-font-size, 0.875rem);
  line-height: 1.4;
  /* A long URL in a text must not widen the page. */
  overflow-wrap: anywhere;
}
:where(.feedback, .feedback *) { min-inline-size: 0; max-inline-size: 100%; }
.row { display: flex; flex-wrap: wrap; align-items: center; gap: 0.375rem; }
.toolbar { margin-block-start: 0.5rem; }
.details { display: grid; gap: 0.625rem; margin-block-start: 0.625rem; }

button {
  display: inline-flex;
  align-items: center;
  justify-content: center;
  gap: 0.375rem;
  min-block-size: var(--_size);
  min-inline-size: var(--_size);
  padding: 0 0.625rem;
  border: 1px solid transparent;
  border-radius: var(--_radius);
  background: transparent;
  color: inherit;
  font: inherit;
  cursor: pointer;
  transition: background-color 120ms ease-out;
}
@media (hover: hover) {
  button:hover { background: var(--_hover); }
}
button:is(:disabled, [aria-disabled="true"]) { opacity: 0.6; cursor: default; background: transparent; }
.icon { padding: 0; }
.outlined { border-color: var(--_line); }
.chip { border-radius: 999px; padding-inline: 0.75rem; }
button[aria-pressed="true"], .primary:not([aria-disabled="true"]) {
  background: var(--_accent);
  border-color: var(--_accent);
  color: var(--_on-accent);
}
@media (hover: hover) {
  button[aria-pressed="true"]:hover, .primary:not([aria-disabled="true"]):hover {
    background: color-mix(in srgb, var(--_accent) 88%, var(--_on-accent));
  }
}
:focus-visible {
  outline: 2px solid var(--hearback-focus, var(--_accent));
  outline-offset: 2px;
}

svg {
  inline-size: 1.125rem;
  block-size: 1.125rem;
  flex: none;
  fill: none;
  stroke: currentColor;
  stroke-width: 1.75;
  stroke-linecap: round;
  stroke-linejoin: round;
}
button[aria-pressed="true"] svg .fill { fill: currentColor; }

input, textarea {
  box-sizing: border-box;
  border: 1px solid light-dark(#767b84, #8b919b);
  border-radius: var(--_radius);
  padding: 0.375rem 0.625rem;
  background: var(--_surface);
  color: var(--_on-surface);
  font: inherit;
}
input { min-block-size: var(--_size); inline-size: 100%; }
textarea {
  display: block;
  inline-size: 100%;
  min-block-size: 6rem;
  margin-block: 0.375rem;
  field-sizing: content;
  /* Browsers set this themselves on a text area, so it is not inherited. */
  overflow-wrap: anywhere;
  max-block-size: 60vh;
  resize: vertical;
  font-size: 1rem;
  line-height: 1.5;
}
textarea[aria-invalid="true"] { border-color: var(--_danger); outline-color: var(--_danger); }
.reason { display: grid; gap: 0.25rem; max-inline-size: 36rem; }
.line { display: grid; grid-template-columns: minmax(0, 1fr) auto; gap: 0.375rem; }
.quiet { color: color-mix(in srgb, currentColor 75%, transparent); }
[aria-expanded="true"] svg { rotate: 180deg; }
.editor, .edited { margin-block-start: 0.5rem; }
.editor label, .title { font-weight: 600; }
.end { margin-inline-start: auto; }
.over { color: var(--_danger); background: var(--_danger-surface); border-radius: 0.25rem; padding-inline: 0.375rem; }

.edited {
  border-inline-start: 3px solid var(--_accent);
  padding: 0.25rem 0 0.25rem 0.875rem;
}
.edited p { margin: 0.25rem 0 0; white-space: pre-wrap; overflow-wrap: anywhere; font-size: 1rem; line-height: 1.5; }
.edited .row { justify-content: space-between; }

.error.shown {
  display: flex;
  flex-wrap: wrap;
  align-items: center;
  gap: 0.25rem 0.375rem;
  inline-size: fit-content;
  margin-block-start: 0.5rem;
  padding: 0.25rem 0.375rem 0.25rem 0.75rem;
  border-radius: var(--_radius);
  background: var(--_danger-surface);
  color: var(--_danger);
}
.error .outlined { border-color: currentColor; }
.error :focus-visible { outline-color: currentColor; }
.error button { flex: none; }
.error [role="alert"] { flex: 1 1 14rem; padding-block: 0.25rem; }
.notice.shown {
  display: flex;
  flex-wrap: wrap;
  align-items: center;
  gap: 0.25rem 0.75rem;
  min-block-size: var(--_size);
  margin-block-start: 0.5rem;
}
.notice:not(.shown) {
  position: absolute;
  inline-size: 1px;
  block-size: 1px;
  overflow: hidden;
  clip-path: inset(50%);
  white-space: nowrap;
}
.frame { position: relative; }

@media (pointer: coarse) {
  button, input { min-block-size: max(var(--_size), 2.75rem); }
  button { min-inline-size: max(var(--_size), 2.75rem); }
  /* Below 16 pixels, Safari on phones zooms in on a focused text field, and not out again. */
  input { font-size: max(1em, 1rem); }
}
@media (prefers-reduced-motion: reduce) {
  button { transition: none; }
}
@media (forced-colors: active) {
  button { border-color: ButtonText; }
  button[aria-pressed="true"], .primary:not([aria-disabled="true"]) {
    forced-color-adjust: none;
    background: Highlight;
    border-color: Highlight;
    color: HighlightText;
  }
  button:disabled, button[aria-disabled="true"] { color: GrayText; border-color: GrayText; opacity: 1; }
  .error.shown { border: 1px solid CanvasText; }
  :focus-visible { outline-color: CanvasText; }
}
`;

/** @type {CSSStyleSheet | undefined} */
let sheet;

export function styleSheet() {
  if (!sheet) {
    sheet = new CSSStyleSheet();
    sheet.replaceSync(STYLE);
  }
  return sheet;
}

const THUMB = [
  ["path", { class: "fill", d: "M7.5 11 11 3.8c1.5 0 2.6 1.1 2.6 2.6V9.5h4.7c1.3 0 2.2 1.1 2 2.4l-1.1 6.4a2 2 0 0 1-2 1.7H7.5Z" }],
  ["path", { d: "M7.5 11H4.6c-.6 0-1.1.5-1.1 1.1v6.8c0 .6.5 1.1 1.1 1.1h2.9" }],
];

/** @type {Record<string, [string, Record<string, string>][]>} */
const ICONS = {
  up: /** @type {any} */ (THUMB),
  down: /** @type {any} */ (THUMB.map(([tag, at]) => [tag, { .../** @type {any} */ (at), transform: "rotate(180 12 12)" }])),
  edit: [["path", { d: "M4 20h4L19.2 8.8a1.4 1.4 0 0 0 0-2l-2-2a1.4 1.4 0 0 0-2 0L4 16v4ZM13.5 6.5l4 4" }]],
  open: [["path", { d: "M6 9.5l6 6 6-6" }]],
  close: [["path", { d: "M6.5 6.5l11 11M17.5 6.5l-11 11" }]],
  again: [["path", { d: "M19.5 12a7.5 7.5 0 1 1-2.2-5.3L19.5 9M19.5 4v5h-5" }]],
};

/** @param {string} name */
export function icon(name) {
  const make = (/** @type {string} */ tag, /** @type {Record<string, string>} */ attributes) => {
    const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [key, value] of Object.entries(attributes)) {
      node.setAttribute(key, value);
    }
    return node;
  };
  const svg = make("svg", { viewBox: "0 0 24 24", "aria-hidden": "true" });
  svg.append(...ICONS[name].map(([tag, attributes]) => make(tag, attributes)));
  return svg;
}
