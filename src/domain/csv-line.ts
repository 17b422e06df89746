import { NumberText } from "#lib/json-text.ts";
import type { Cell } from "./result-table.ts";

/** What a spreadsheet may take for a formula, in the width of East Asian scripts, too. */
const FORMULA = /^[=+\-@\t\r\n\uFF1D\uFF0B\uFF0D\uFF20]/;

/** One line of RFC 4180. Texts stand in quotes; numbers, true and false do not; nothing is nothing. */
export function csvLine(cells: readonly Cell[]): string {
  return `${cells.map(csvCell).join(",")}\r\n`;
}

function csvCell(cell: Cell): string {
  if (cell === null) return "";
  if (cell instanceof NumberText) return cell.text;
  if (typeof cell === "boolean") return String(cell);
  return `"${harmless(cell).replaceAll('"', '""')}"`;
}

/** docs/decisions/0028; OWASP, CSV injection: a leading apostrophe makes it a text. A number of the data stays one, also below zero. */
const harmless = (text: string): string => (FORMULA.test(text) ? `'${text}` : text);
