import assert from "node:assert/strict";
import { test } from "node:test";
import readExcel from "read-excel-file/node";
import { writeXlsx, type SheetCell } from "#lib/write-xlsx.ts";

async function* rowsOf(count: number): AsyncIterable<readonly SheetCell[]> {
  for (let row = 0; row < count; row++) yield [row, `=A${row}`, row % 2 === 0, null];
}

test("what does not fit a sheet goes on in the next, each with the headings, and no text is a formula", async () => {
  const bytes = Buffer.concat(
    await Array.fromAsync(writeXlsx("records", ["n", "=text", "even", "none"], rowsOf(25), 11)),
  );
  const sheets = await readExcel(bytes);
  assert.deepEqual(
    sheets.map(({ data }) => data.length),
    [11, 11, 6],
  );
  for (const { data } of sheets) assert.deepEqual(data[0], ["n", "=text", "even", "none"]);
  assert.deepEqual(sheets.at(-1)?.data.at(-1), [24, "=A24", true, null]);
});

test("no rows are a sheet with its headings", async () => {
  const bytes = Buffer.concat(await Array.fromAsync(writeXlsx("records", ["is_valid", "errors"], rowsOf(0))));
  assert.deepEqual((await readExcel(bytes))[0]?.data, [["is_valid", "errors"]]);
});
