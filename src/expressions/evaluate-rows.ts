import { ExpressionError, type Outcome, type Scope } from "#domain/expression.ts";
import type { Json } from "#domain/json.ts";
import { must } from "#lib/assert.ts";
import type { PlainExpression } from "./plain-expression.ts";
import { NEEDS_SANDBOX, type PlainValue } from "./plain-functions.ts";
import type { Cell } from "./thread-messages.ts";

/** Expressions for the rows of a batch. Plain ones are compiled. */
interface Rows {
  readonly sources: readonly string[];
  readonly expressions: readonly (PlainExpression | null)[];
  readonly rows: readonly Scope[];
  readonly bound: { readonly [name: string]: Json };
}

type RunInThread = (sources: readonly string[], rows: readonly Scope[]) => Promise<readonly Cell[]>;

/** Returns `outcomes[row][expression]`. Plain expressions are evaluated here, all others in one or two round trips to a thread. */
export async function evaluateRows(batch: Rows, run: RunInThread): Promise<readonly (readonly Outcome[])[]> {
  const { sources, rows } = batch;
  // An unparsed root can't be read here.
  const isText = rows.some(({ rootText }) => rootText !== undefined);
  const { outcomes, left } = isText ? leaveAll(batch) : evaluateHere(batch);
  for (const part of left) {
    const cells = await run(
      part.columns.map((column) => must(sources[column], "source")),
      part.indexes.map((index) => must(rows[index], "row")),
    );
    fillIn(outcomes, sources, part, cells);
  }
  return outcomes;
}

/** The same without a thread; null: some expression needs one on some row. */
export function evaluateRowsHere(batch: Rows): readonly (readonly Outcome[])[] | null {
  if (batch.expressions.includes(null) || batch.rows.some(({ rootText }) => rootText !== undefined))
    return null;
  const { outcomes, left } = evaluateHere(batch);
  return left.length === 0 ? outcomes : null;
}

interface Left {
  readonly columns: readonly number[];
  readonly indexes: readonly number[];
}

/**
 * Returns the outcomes of this thread, with holes for the rest, and the work for the sandbox: expressions that are not plain on
 * all rows, and plain ones on the rows where they need the sandbox.
 */
function evaluateHere({ expressions, rows, bound }: Rows): {
  readonly outcomes: Outcome[][];
  readonly left: readonly Left[];
} {
  const always = expressions.flatMap((expression, column) => (expression === null ? [column] : []));
  const columns = new Set<number>();
  const indexes = new Set<number>();
  const outcomes = rows.map(({ root, variables: own }, index) => {
    const scope = { root, own, bound };
    return expressions.map((expression, column): Outcome => {
      const value: PlainValue = expression === null ? NEEDS_SANDBOX : expression(scope);
      if (value !== NEEDS_SANDBOX) return { ok: true, value };
      if (expression !== null) {
        columns.add(column);
        indexes.add(index);
      }
      return UNKNOWN;
    });
  });
  const left = [
    { columns: always, indexes: [...rows.keys()] },
    { columns: [...columns], indexes: [...indexes] },
  ];
  return { outcomes, left: left.filter((each) => each.columns.length > 0 && each.indexes.length > 0) };
}

function leaveAll({ sources, rows }: Rows): ReturnType<typeof evaluateHere> {
  const outcomes = rows.map(() => sources.map(() => UNKNOWN));
  return { outcomes, left: [{ columns: [...sources.keys()], indexes: [...rows.keys()] }] };
}

const UNKNOWN: Outcome = { ok: false, message: "not evaluated yet" };

function fillIn(
  outcomes: Outcome[][],
  sources: readonly string[],
  { columns, indexes }: Left,
  cells: readonly Cell[],
): void {
  for (const [place, index] of indexes.entries()) {
    const row = must(outcomes[index], "row");
    for (const [offset, column] of columns.entries()) {
      if (row[column] !== UNKNOWN) continue;
      row[column] = outcomeOf(must(sources[column], "source"), cells[place * columns.length + offset]);
    }
  }
}

function outcomeOf(source: string, cell: Cell | undefined): Outcome {
  const { v, e, x } = must(cell, "result of an expression");
  return e === undefined
    ? { ok: true, value: v }
    : { ok: false, message: new ExpressionError(source, e).message, ...(x && { isExhausted: x }) };
}
