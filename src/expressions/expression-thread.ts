import { parentPort, workerData } from "node:worker_threads";
import { limits } from "#domain/limits.ts";
import { must } from "#lib/assert.ts";
import { ownThreadId, lowerPriority } from "#lib/thread-priority.ts";
import { guardedJsonata } from "./guarded-jsonata.ts";
import type { Evaluated } from "./guarded-jsonata.ts";
import { hardenThread } from "./harden.ts";
import { NOT_TRIED, Progress } from "./thread-messages.ts";
import type { Cell, FromThread, LongList, TaskMessage, ThreadData, ToThread } from "./thread-messages.ts";

/**
 * Runs in a worker thread. It evaluates expressions of several runs, one at a time; each sees only the variables of its own
 * binding. JSONata's evaluation is a chain of microtasks, so nothing can interrupt the steps of one evaluation; between
 * evaluations a long batch yields to others.
 */

const SLICE_MS = 20;
/** The most that the main thread parses at once. */
const PART_CHARACTERS = 65_536;
const PAYLOAD_CHARACTERS_MAX = 64_000_000;
/** JSONata evaluates the items of `[…]` and the groups of `{…}` concurrently and counts all of them as depth. */
const DEPTH_MAX = 50_000;
const ITEMS_MAX = 1_000_000;

const port = must(parentPort, "parentPort");
const data = workerData as ThreadData;
const progress = new Int32Array(data.progress);
const bindings = new Map<number, { readonly payload: string; shared?: Shared }>();

/** Parsed JSON that several evaluations share. */
interface Shared {
  readonly value: unknown;
  readonly emptyLists: readonly unknown[][];
}

interface Row {
  readonly root?: unknown;
  readonly variables?: unknown;
}

if (data.isLowPriority) lowerPriority(ownThreadId());
hardenThread({ charactersMax: limits.responseBytesMax, itemsMax: ITEMS_MAX });
const evaluate = await guardedJsonata({
  timeoutMs: data.timeoutMs,
  depthMax: DEPTH_MAX,
  itemsMax: ITEMS_MAX,
  charactersMax: limits.responseBytesMax,
});

/** Fails the current evaluation. */
let abandon: (() => void) | undefined;

port.on("message", (message: ToThread) => {
  abandon?.();
  if (message.kind === "bind") bindings.set(message.id, { payload: message.payload });
  else if (message.kind === "release") bindings.delete(message.id);
  else void runTask(message);
});

/**
 * Yields to other tasks after all microtasks are done. An evaluation that hasn't ended by then never will (`await` waits for an
 * object that has a function called `then`), so it fails.
 */
function turn(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(() => {
      abandon?.();
      resolve();
    });
  });
}

async function runTask(task: TaskMessage): Promise<void> {
  mark(task.id, -1);
  const bound = boundVariables(task.binding);
  const rows = readRows(task);
  mark(0, -1);
  if (rows === null) {
    port.postMessage({ id: task.id, malformed: true } satisfies FromThread);
    return;
  }
  const slices = openSlices();
  let cells = "";
  const lists: LongList[] = [];
  let isOver = false;
  for (const [index, row] of rows.entries()) {
    const own = protect(row);
    for (const [column, source] of task.sources.entries()) {
      let cell: Cell | Evaluated = NOT_TRIED;
      if (!isOver) {
        mark(task.id, index * task.sources.length + column);
        cell = await evaluateCell(source, row, [bound, own]);
        // `[a, b]` fails with the first of its items while the others continue: let them end before the next evaluation.
        if (!cell.ok) await slices.next();
        mark(0, -1);
        isOver = !cell.ok && cell.timedOut;
        if (data.taskMs !== null && (isOver || slices.usedMs() > data.taskMs)) {
          port.postMessage({ id: task.id, overdue: column } satisfies FromThread);
          return;
        }
      }
      const parts = task.rootText === null ? null : partsOf(cell);
      if (parts !== null) lists.push({ cell: index * task.sources.length + column, parts });
      const text = parts === null ? cellText(cell, PAYLOAD_CHARACTERS_MAX - cells.length) : "{}";
      cells += `${cells === "" ? "" : ","}${text}`;
    }
    if (slices.isOver()) await slices.next();
    // Released: the result is no longer needed.
    if (!bindings.has(task.binding)) break;
  }
  port.postMessage({ id: task.id, cells: `[${cells}]`, lists } satisfies FromThread);
}

/** Returns null if the root is not JSON. */
function readRows({ rows, rootText }: TaskMessage): readonly Row[] | null {
  const read = JSON.parse(rows) as readonly Row[];
  if (rootText === null) return read;
  try {
    const root: unknown = JSON.parse(rootText);
    return read.map((row) => ({ ...row, root }));
  } catch {
    return null;
  }
}

/** The items of a long list, as several JSON lists. Null if the value is short, or not a list. */
function partsOf(cell: Cell | Evaluated): readonly string[] | null {
  if (!("ok" in cell) || !cell.ok || (cell.text?.length ?? 0) <= PART_CHARACTERS) return null;
  const value: unknown = JSON.parse(cell.text ?? "");
  if (!Array.isArray(value)) return null;
  const parts: string[] = [];
  let part: string[] = [];
  let characters = 0;
  for (const item of value) {
    const text = JSON.stringify(item);
    part.push(text);
    characters += text.length;
    if (characters < PART_CHARACTERS) continue;
    parts.push(`[${part.join(",")}]`);
    part = [];
    characters = 0;
  }
  parts.push(`[${part.join(",")}]`);
  return parts;
}

/** Time slices of a task on the thread, with the CPU time of those that have ended. */
function openSlices(): { usedMs(): number; isOver(): boolean; next(): Promise<void> } {
  let endsAt = performance.now() + SLICE_MS;
  let began = process.threadCpuUsage();
  let usedMs = 0;
  return {
    usedMs: () => usedMs,
    isOver: () => performance.now() > endsAt,
    async next() {
      const { user, system } = process.threadCpuUsage(began);
      usedMs += (user + system) / 1_000;
      await turn();
      began = process.threadCpuUsage();
      endsAt = performance.now() + SLICE_MS;
    },
  };
}

async function evaluateCell(source: string, row: Row, shared: readonly Shared[]): Promise<Evaluated> {
  const variables: Record<string, unknown> = Object.create(null);
  Object.assign(variables, shared[0]?.value, row.variables);
  const restore = (): void => {
    for (const { emptyLists } of shared) for (const list of emptyLists) list.length = 0;
  };
  return new Promise((resolve) => {
    const stop = (): void => settle({ ok: false, reason: "never ends", timedOut: false });
    const stopping = setImmediate(stop);
    const settle = (result: Evaluated): void => {
      clearImmediate(stopping);
      if (abandon === stop) abandon = undefined;
      resolve(result);
    };
    abandon = stop;
    void evaluate(source, row.root, variables, restore).then(settle);
  });
}

/** Records the thread's progress for the code that may have to end it. */
function mark(task: number, cell: number): void {
  Atomics.store(progress, Progress.cell, cell);
  Atomics.store(progress, Progress.task, task);
  Atomics.add(progress, Progress.ticks, 1);
}

function cellText(cell: Cell | Evaluated, charactersLeft: number): string {
  if (!("ok" in cell)) return JSON.stringify(cell);
  if (!cell.ok) return JSON.stringify({ e: cell.reason, ...(cell.timedOut && { x: true }) } satisfies Cell);
  if (cell.text === undefined) return "{}";
  if (cell.text.length > charactersLeft)
    return JSON.stringify({ e: "the results of this batch are too large in total" });
  return `{"v":${cell.text}}`;
}

function boundVariables(id: number): Shared {
  const binding = must(bindings.get(id), "binding");
  binding.shared ??= protect(JSON.parse(binding.payload));
  return binding.shared;
}

/**
 * jsonata modifies data in two cases: it sets `token` and `position` on an object that is called like a function, and pushes an
 * item into an empty list that is grouped (`list{…}`). The first is prevented, the second undone.
 */
function protect(value: unknown): Shared {
  const emptyLists: unknown[][] = [];
  // Not recursive: data may nest deeper than the stack allows.
  const left: unknown[] = [value];
  while (left.length > 0) {
    const item = left.pop();
    if (typeof item !== "object" || item === null) continue;
    if (Array.isArray(item)) {
      if (item.length === 0) emptyLists.push(item);
      for (const element of item) left.push(element);
    } else {
      for (const key of Object.keys(item)) left.push(Reflect.get(item, key));
      Object.freeze(item);
    }
  }
  return { value, emptyLists };
}
