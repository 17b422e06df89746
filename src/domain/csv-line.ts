import { NumberText } from "#lib/json-text.ts";
import type { Cell } from "./result-table.ts";

/** Characters that a spreadsheet may read as the start of a formula, including full-width forms. */
const FORMULA = /^[=+\-@\t\r\n\uFF1D\uFF0B\uFF0D\uFF20]/;

/** One line of RFC 4180. Strings are quoted; numbers, true and false are not; null is an empty field. */
export function csvLine(cells: readonly Cell[]): string {
  return `${cells.map(csvCell).join(",")}\r\n`;
}

function csvCell(cell: Cell): string {
  if (cell === null) return "";
  if (cell instanceof NumberText) return cell.text;
  if (typeof cell === "boolean") return String(cell);
  return `"${harmless(cell).replaceAll('"', '""')}"`;
}

/** docs/decisions/0028; OWASP, CSV injection: a leading apostrophe turns a cell into text. Numbers remain numbers, even negative ones. */
const harmless = (text: string): string => (FORMULA.test(text) ? `'${text}` : text);
