import type { Locator } from "playwright-core";
import type { JsonObject } from "#domain/json.ts";
import { limits } from "#domain/limits.ts";
import { readColumns, type Column } from "./columns.ts";
import { lookUntil, throwIfExpired, untilOne } from "./condition.ts";
import type { StepRun } from "./define-step.ts";
import type { LocatorConfig } from "./locator.ts";
import { StepFailure } from "./step-failure.ts";

type Cells = readonly (string | null)[];

const WHOLE_ROW: readonly Column[] = [{ name: "row", css: null, attribute: null }];

/** The number of rows once they are there; inside of a `repeat`, once they are others than in the round before. */
export async function countRows(
  run: StepRun,
  rows: LocatorConfig,
  empty: LocatorConfig | undefined,
): Promise<number> {
  if (!(await untilRows(run, rows, empty))) return 0;
  const found = await run.find(rows);
  return run.lastRound === null ? await found.count() : (await otherCells(run, found, WHOLE_ROW)).length;
}

/** Waits for the first row, or for what says that there is none. Returns whether there are rows. */
async function untilRows(
  run: StepRun,
  rows: LocatorConfig,
  empty: LocatorConfig | undefined,
): Promise<boolean> {
  const conditions = [{ visible: rows }, ...(empty === undefined ? [] : [{ visible: empty }])];
  const met = await untilOne(run, conditions, run.timeoutMs);
  await run.find(rows);
  if (met < 0) throw new StepFailure("not_found", `no element matches \`rows\`${emptyRemedy(empty)}`);
  return met === 0;
}

const emptyRemedy = (empty: LocatorConfig | undefined): string =>
  empty === undefined
    ? "; if the page may be without rows, say by `empty` how it shows that"
    : ", nor `empty`";

/** The rows of the page as records, with the text of each column. */
export async function readRows(
  run: StepRun,
  rows: LocatorConfig,
  columns: Readonly<Record<string, string>>,
  empty: LocatorConfig | undefined,
): Promise<readonly JsonObject[]> {
  const found = await run.find(rows);
  const read = readColumns(columns);
  if (!(await untilRows(run, rows, empty))) return [];
  const cells = await (run.lastRound === null ? cellsOf(found, read) : otherCells(run, found, read));
  return cells.map((row) => recordOf(read, row));
}

/** Single fields of the page, or of the row that the step is in. Fails if none of them is found. */
export async function readFields(
  run: StepRun,
  fields: Readonly<Record<string, string>>,
): Promise<JsonObject> {
  const read = readColumns(fields);
  const root = "goto" in run.root ? run.root.locator("css=:root") : run.root;
  const found = await lookUntil(run, run.timeoutMs, async () => {
    const [row] = await cellsOf(root, read);
    return row?.some((cell) => cell !== null) === true ? row : null;
  });
  if (found === null) throw new StepFailure("not_found", "the page has none of the `fields`");
  return recordOf(read, found);
}

const recordOf = (columns: readonly Column[], row: Cells): JsonObject =>
  Object.fromEntries(columns.map(({ name }, index) => [name, row[index] ?? null]));

/** A little more than one frame, since each page waits for it: a page that draws its rows bit by bit has drawn more of them by then. */
const STILL_MS = 17;

/**
 * The rows once they differ from the round before, and stay the same from one look to the next: after a click on "Next" the page
 * still shows the old rows until the new ones have come.
 */
async function otherCells(
  run: StepRun,
  found: Locator,
  columns: readonly Column[],
): Promise<readonly Cells[]> {
  const { lastRound } = run;
  const key = run.path.join(".");
  const before = lastRound?.get(key);
  const shown = await lookUntil(run, run.timeoutMs, async () => {
    const cells = await cellsOf(found, columns);
    if (before === undefined) return cells;
    const text = JSON.stringify(cells);
    if (cells.length > 0 && text !== before) {
      await run.sleep(STILL_MS);
      if (JSON.stringify(await cellsOf(found, columns)) === text) return cells;
    }
    await throwIfExpired(run);
    return null;
  });
  if (shown === null)
    throw new StepFailure("unexpected", "the page still shows the rows of the round before");
  lastRound?.set(key, JSON.stringify(shown));
  return shown;
}

/** One call for all rows. The page's own script may answer instead, so the answer is read like any other text of the target. */
async function cellsOf(found: Locator, columns: readonly Column[]): Promise<readonly Cells[]> {
  const answer: unknown = await found.evaluateAll(readCells, {
    columns,
    charactersMax: limits.browserCharactersMax,
  });
  if (answer === "too long")
    throw new StepFailure("unexpected", `the rows have more than ${limits.browserCharactersMax} characters`);
  const rows: readonly unknown[] = Array.isArray(answer) ? answer : [];
  return rows.map((row) =>
    (Array.isArray(row) ? row : []).map((cell: unknown) => (typeof cell === "string" ? cell : null)),
  );
}

/** The part of the DOM that `readCells` uses: this file is checked without the types of pages. */
interface PageElement {
  readonly textContent: string | null;
  querySelector(css: string): PageElement | null;
  getAttribute(name: string): string | null;
}

/** Runs in the page, so it uses nothing from outside. */
function readCells(
  given: readonly unknown[],
  { columns, charactersMax }: { readonly columns: readonly Column[]; readonly charactersMax: number },
): readonly Cells[] | "too long" {
  let characters = 0;
  const rows = (given as readonly PageElement[]).map((element) =>
    columns.map(({ css, attribute }) => {
      const cell = css === null ? element : element.querySelector(css);
      const value =
        attribute === null ? (cell?.textContent?.trim() ?? null) : (cell?.getAttribute(attribute) ?? null);
      characters += value?.length ?? 0;
      return value;
    }),
  );
  return characters > charactersMax ? "too long" : rows;
}
