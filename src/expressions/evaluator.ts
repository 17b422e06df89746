import { ExpressionError } from "#domain/expression.ts";
import type { BoundExpressions, Outcome, Scope } from "#domain/expression.ts";
import { isJsonObject } from "#domain/json.ts";
import type { Json } from "#domain/json.ts";
import { limits } from "#domain/limits.ts";
import { assert, must } from "#lib/assert.ts";
import { boundedCache } from "./bounded-cache.ts";
import { evaluateRows, evaluateRowsHere } from "./evaluate-rows.ts";
import { compilePlain, type PlainExpression } from "./plain-expression.ts";
import type { KillReason } from "./supervised-thread.ts";
import { holdsExpression, parseTemplate, renderParts } from "./template.ts";
import type { ParsedTemplate, TemplatePart } from "./template.ts";
import { ThreadLanes } from "./thread-lanes.ts";
import type { Cell } from "./thread-messages.ts";
import type { Binding } from "./thread-task.ts";

export interface EvaluatorOptions {
  /** Threads for quick evaluations. Threads for slow ones are started and ended as needed. */
  readonly threads?: number | undefined;
  /** Limit for one evaluation on one row. */
  readonly timeoutMs?: number | undefined;
  /** Limit for a thread's heap. */
  readonly memoryMiB?: number | undefined;
  /** Called with the expression that killed a thread. The text is the author's and contains no data. */
  readonly onKill?: ((reason: KillReason, source: string) => void) | undefined;
}

/** Expressions with their variables, which `release` removes from every thread. */
export interface Bound extends BoundExpressions {
  /** As `evaluateBatch`, without a thread; null: some expression needs one. */
  evaluateHere(sources: readonly string[], rows: readonly Scope[]): readonly (readonly Outcome[])[] | null;
  release(): void;
}

export interface Evaluator {
  bind(variables: { readonly [name: string]: Json }): Bound;
  /** Ends the threads. Evaluations in progress are rejected. */
  close(): Promise<void>;
}

const TEMPLATES_MAX = 1_000;

/**
 * Evaluates JSONata in worker threads that are ended when an expression takes too much time or memory (docs/decisions/0016). The
 * first thread starts with the first expression, and idle threads don't keep the process alive.
 */
export function openEvaluator(options: EvaluatorOptions = {}): Evaluator {
  const lanes = new ThreadLanes({
    threads: options.threads ?? 1,
    timeoutMs: options.timeoutMs ?? limits.expressionMs,
    memoryMiB: options.memoryMiB ?? limits.expressionThreadMiB,
    onKill: options.onKill,
  });
  const templates = boundedCache<ParsedTemplate>(TEMPLATES_MAX);
  const plains = boundedCache<PlainExpression | null>(TEMPLATES_MAX);
  let lastId = 0;
  const nextId = (): number => (lastId = (lastId % 0x7fff_ffff) + 1);

  function bind(variables: { readonly [name: string]: Json }): Bound {
    const binding = { id: nextId(), payload: JSON.stringify(variables) };
    let released = false;
    const runBound = (sources: readonly string[], rows: readonly Scope[]): Promise<readonly Cell[]> => {
      assert(!released, "the variables of these expressions are still bound");
      return submit(lanes, nextId(), binding, sources, rows);
    };
    const rowsOf = (sources: readonly string[], rows: readonly Scope[]) => ({
      sources,
      expressions: sources.map((source) => plains.get(source, compilePlain)),
      rows,
      bound: variables,
    });
    return {
      async evaluate(source, scope = {}) {
        const [cell] = await runBound([source], [scope]);
        return valueOf(source, cell);
      },
      async render(template, scope = {}) {
        const strings = parseStrings(template, templates);
        const sources = [...new Set([...strings.values()].flatMap(expressionsOf))];
        if (sources.length === 0) return template;
        const cells = await runBound(sources, [scope]);
        const values = new Map(sources.map((source, index) => [source, valueOf(source, cells[index])]));
        return fill(template, strings, values);
      },
      async evaluateBatch(sources, rows) {
        return await evaluateRows(rowsOf(sources, rows), runBound);
      },
      evaluateHere: (sources, rows) => evaluateRowsHere(rowsOf(sources, rows)),
      release() {
        released = true;
        lanes.release(binding);
      },
    };
  }

  return {
    bind,
    async close() {
      await lanes.close();
    },
  };
}

function submit(
  lanes: ThreadLanes,
  id: number,
  binding: Binding,
  sources: readonly string[],
  rows: readonly Scope[],
): Promise<readonly Cell[]> {
  return new Promise((resolve, reject) => {
    lanes.submit({
      id,
      binding,
      sources,
      rowCount: rows.length,
      rows: JSON.stringify(rows.map(({ root, variables }) => ({ root, variables }))),
      rootText: rootTextOf(rows),
      attempts: 0,
      isDropped: false,
      resolve,
      reject,
    });
  });
}

function rootTextOf(rows: readonly Scope[]): string | null {
  const text = rows.find(({ rootText }) => rootText !== undefined)?.rootText ?? null;
  assert(text === null || rows.length === 1, "a root given as text belongs to a single row");
  return text;
}

function valueOf(source: string, cell: Cell | undefined): Json | undefined {
  const { v, e } = must(cell, "result of an expression");
  if (e !== undefined) throw new ExpressionError(source, e);
  return v;
}

type Parsed = ReadonlyMap<string, readonly TemplatePart[]>;

/** The parts of every string of a template that holds expressions. Throws ExpressionError. */
function parseStrings(
  template: Json,
  cache: { get: (key: string, make: typeof parseTemplate) => ParsedTemplate },
): Parsed {
  const parsed = new Map<string, readonly TemplatePart[]>();
  const visit = (value: Json): void => {
    if (typeof value === "string") {
      if (!holdsExpression(value) || parsed.has(value)) return;
      const result = cache.get(value, parseTemplate);
      if (!result.ok) throw new ExpressionError(value, `${result.message} (at character ${result.position})`);
      parsed.set(value, result.parts);
    } else if (Array.isArray(value)) {
      for (const item of value) visit(item);
    } else if (isJsonObject(value)) {
      for (const item of Object.values(value)) visit(item);
    }
  };
  visit(template);
  return parsed;
}

function expressionsOf(parts: readonly TemplatePart[]): string[] {
  return parts.flatMap((part) => (typeof part === "string" ? [] : [part.expression]));
}

/**
 * docs/blueprints.md#expressions: a string that is one expression keeps the type of its value; an expression without a value is
 * left out; keys aren't templates.
 */
function fill(
  template: Json,
  parsed: Parsed,
  values: ReadonlyMap<string, Json | undefined>,
): Json | undefined {
  if (typeof template === "string") {
    const parts = parsed.get(template);
    if (parts === undefined) return template;
    const [only] = parts;
    if (parts.length === 1 && typeof only === "object") return values.get(only.expression);
    return renderParts(
      parts,
      expressionsOf(parts).map((source) => values.get(source)),
    );
  }
  if (Array.isArray(template)) {
    return template.map((item: Json) => fill(item, parsed, values)).filter((item) => item !== undefined);
  }
  if (!isJsonObject(template)) return template;
  const filled = Object.entries(template).map(([key, item]) => [key, fill(item, parsed, values)] as const);
  // Unlike assignment this makes `__proto__` a key like any other.
  return Object.fromEntries(filled.filter((entry): entry is [string, Json] => entry[1] !== undefined));
}
