/** Tables as CSV files (RFC 4180). @module */

/** What a spreadsheet would read as the beginning of a formula. */
const FORMULA = /^[=+\-@\t\r]/;

/** @typedef {string | number | null | undefined} Value */

/** @param {Value} value */
function field(value) {
  if (typeof value !== "string") {
    return String(value ?? "");
  }
  // Values come from feedback, so anyone may have written them.
  const text = FORMULA.test(value) ? `'${value}` : value;
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/** @param {Value[][]} rows */
export function csv(rows) {
  return rows.map((row) => `${row.map(field).join(",")}\r\n`).join("");
}

/** Saves a file. @param {string} name @param {string} text */
export function save(name, text) {
  const url = URL.createObjectURL(new Blob([text], { type: "text/csv;charset=utf-8" }));
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  link.click();
  // Browsers read the blob after the click.
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}
