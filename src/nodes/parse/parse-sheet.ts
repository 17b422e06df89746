import { readSheet } from "read-excel-file/universal";
import { REPLY_CHARACTERS_MAX, type Cell, type ParseReply, type SheetJob } from "./parse-jobs.ts";
import { unpackXlsx } from "./unpack-xlsx.ts";

const CELLS_MAX = 2_000_000;

/** The rows of one sheet; the first is the header, in `names`. Only the parse thread may call it. */
export async function parseSheet(job: SheetJob): Promise<ParseReply> {
  const unpacked = unpackXlsx(job.bytes);
  if ("problem" in unpacked) return unpacked;
  const read = await readCells(unpacked.zip, job.sheet);
  if ("problem" in read) return read;
  const rows = read.cells.map((row) => row.map(cellOf));
  let characters = 0;
  let cells = 0;
  for (const row of rows) {
    cells += row.length;
    for (const cell of row) characters += typeof cell === "string" ? cell.length : 0;
  }
  if (cells > CELLS_MAX) return { problem: `has more than ${CELLS_MAX} cells in the sheet` };
  if (characters > REPLY_CHARACTERS_MAX)
    return { problem: `produces more than ${REPLY_CHARACTERS_MAX} characters` };
  const [header = [], ...data] = rows;
  return {
    names: header.map((name) => (name === null ? "" : String(name))),
    rows: data.filter((row) => row.some((cell) => cell !== null)),
  };
}

async function readCells(
  zip: ArrayBuffer,
  sheet: string | number,
): Promise<{ readonly cells: readonly (readonly unknown[])[] } | { readonly problem: string }> {
  try {
    return { cells: await readSheet(zip, sheet, { trim: false }) };
  } catch (error) {
    if (error instanceof RangeError) throw error;
    const name = error instanceof Error ? error.name : "";
    if (name === "SheetNotFoundError")
      return {
        problem: typeof sheet === "number" ? `has no sheet ${sheet}` : `has no sheet named \`${sheet}\``,
      };
    return { problem: "is not a spreadsheet, or is damaged" };
  }
}

/** Excel's times have no time zone: a date becomes `2026-01-31`, a date with a time `2026-01-31T08:30:00`. */
function cellOf(value: unknown): Cell {
  if (value instanceof Date) {
    const text = value.toISOString();
    return text.endsWith("T00:00:00.000Z") ? text.slice(0, 10) : text.replace(/(\.000)?Z$/, "");
  }
  return typeof value === "string" || typeof value === "number" || typeof value === "boolean" ? value : null;
}
