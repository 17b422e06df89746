import { writeXlsxStream, XLSX_MAX_ROWS_PER_SHEET } from "hucre/xlsx";

export type SheetCell = string | number | boolean | null;

/** What Excel takes. */
export const XLSX_COLUMNS_MAX = 16_384;
export const XLSX_CELL_CHARACTERS_MAX = 32_767;

/** What no XML may hold; half a surrogate pair, too. */
const NOT_XML = /[\u0000-\u0008\u000B\u000C\u000E-\u001F\uFFFE\uFFFF]|\p{Surrogate}/gu;

/**
 * An Excel workbook as it grows: memory does not grow with its rows. Texts are texts, never formulas. What does not fit a sheet goes
 * on in further ones, each with the headings. The one module that knows the library.
 */
export function writeXlsx(
  name: string,
  headings: readonly string[],
  rows: AsyncIterable<readonly SheetCell[]>,
  rowsPerSheet = XLSX_MAX_ROWS_PER_SHEET,
): AsyncIterable<Uint8Array> {
  const clean = async function* (): AsyncIterable<SheetCell[]> {
    for await (const row of rows) yield row.map((cell) => (typeof cell === "string" ? xmlText(cell) : cell));
  };
  return writeXlsxStream(clean(), {
    name,
    columns: headings.map((heading) => ({ header: xmlText(heading) })),
    freezePane: { rows: 1 },
    maxRowsPerSheet: rowsPerSheet,
  }) as AsyncIterable<Uint8Array>;
}

const xmlText = (text: string): string => text.replaceAll(NOT_XML, "\uFFFD");
