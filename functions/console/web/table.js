/** Tables that scroll in their own region, and can be saved. @module */

import { csv, save } from "./csv.js";
import { button, make } from "./dom.js";

/**
 * @template Row
 * @typedef {{
 *   title: string,
 *   value?: (row: Row) => import("./csv.js").Value,
 *   show?: (row: Row) => Node | string,
 *   look?: "number" | "plot" | "share",
 *   heading?: Node,
 *   isFileOnly?: boolean,
 * }} Column `value` is what a file has, and what is shown without `show`; a column without `value` is in no file.
 *   `heading` is shown below the title.
 */

/**
 * @template Row
 * @typedef {{ caption: string, file: string, columns: Column<Row>[], rows: Row[] }} Table
 */

/** @template Row @param {Table<Row>} table */
export function tableElement({ caption, columns, rows }) {
  const shown = columns.filter(({ isFileOnly }) => !isFileOnly);
  // A plot repeats what other cells say, so its column has no name.
  const head = shown.map(({ title, look, heading }) =>
    title === "" ? make("td", { class: look }, heading) : make("th", { scope: "col", class: look }, title, heading),
  );
  const body = rows.map((row) => make("tr", {}, ...shown.map((column, index) => cell(column, row, index === 0))));
  const table = make(
    "table",
    {},
    make("caption", { class: "unseen" }, caption),
    make("thead", {}, make("tr", {}, ...head)),
    make("tbody", {}, ...body),
  );
  return make("div", { class: "scroll", role: "region", tabindex: 0, "aria-label": `Table: ${caption}` }, table);
}

/** @template Row @param {Column<Row>} column @param {Row} row @param {boolean} isFirst */
function cell({ value, show, look }, row, isFirst) {
  const content = show ? show(row) : String(value?.(row) ?? "–");
  return isFirst ? make("th", { scope: "row", class: look }, content) : make("td", { class: look }, content);
}

/** A button that saves a table. @template Row @param {Table<Row>} table */
export function saveButton({ caption, file, columns, rows }) {
  const saved = columns.filter(({ value }) => value);
  const write = () =>
    save(
      `${file}.csv`,
      csv([saved.map(({ title }) => title), ...rows.map((row) => saved.map(({ value }) => value?.(row)))]),
    );
  return button("CSV", write, {
    class: "quiet",
    "aria-label": `Save as CSV: ${caption}`,
    title: "Save the numbers as a CSV file",
  });
}
