import { writeXlsxStream, XLSX_MAX_ROWS_PER_SHEET } from "hucre/xlsx";

export type SheetCell = string | number | boolean | null;

/** Excel's limits. */
export const XLSX_COLUMNS_MAX = 16_384;
export const XLSX_CELL_CHARACTERS_MAX = 32_767;

/** Characters that XML does not allow, including unpaired surrogates. */
const NOT_XML = /[\u0000-\u0008\u000B\u000C\u000E-\u001F\uFFFE\uFFFF]|\p{Surrogate}/gu;

/**
 * Writes an Excel workbook as a stream, in constant memory. Text is always text, never a formula. Rows beyond a sheet's limit continue in
 * further sheets, each with the headings. Only this module uses the library.
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
