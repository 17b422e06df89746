import { STRIKES_MAX } from "./thread-messages.ts";
import type { Cell } from "./thread-messages.ts";

/** The variables of one run or login, as JSON text. Sent to a thread once, when it first needs them. */
export interface Binding {
  readonly id: number;
  readonly payload: string;
}

/** Expressions × rows that wait for a thread's answer. */
export interface Task {
  readonly id: number;
  readonly binding: Binding;
  readonly sources: readonly string[];
  readonly rowCount: number;
  /** A JSON list of scopes. */
  readonly rows: string;
  /** What killed a thread, by index: row × sources + source. */
  readonly failures: Map<number, string>;
  /** How often the thread died before it said what it was at. */
  attempts: number;
  readonly resolve: (cells: readonly Cell[]) => void;
  readonly reject: (error: Error) => void;
}

/** A whole task fails with one reason. */
function failTask(task: Task, reason: string): void {
  task.resolve(Array.from({ length: task.rowCount * task.sources.length }, () => ({ e: reason })));
}

/** The thread's cells, with what killed earlier threads in their places. */
export function answerTask(task: Task, cells: readonly Cell[]): void {
  task.resolve(cells.map((cell, index) => withFailure(cell, task.failures.get(index))));
}

function withFailure(cell: Cell, reason: string | undefined): Cell {
  return reason === undefined ? cell : { e: reason };
}

/**
 * Notes that evaluation `place` killed its thread. After `STRIKES_MAX` of one expression the rest of its rows fail too.
 * True if nothing is left to evaluate: the task is then answered.
 */
export function strikeTask(task: Task, place: number, reason: string): boolean {
  const width = task.sources.length;
  if (place < 0) {
    failTask(task, reason);
    return true;
  }
  task.failures.set(place, reason);
  const column = place % width;
  const places = Array.from({ length: task.rowCount }, (_, row) => row * width + column);
  if (places.filter((index) => task.failures.has(index)).length >= STRIKES_MAX) {
    for (const index of places) {
      if (index > place && !task.failures.has(index))
        task.failures.set(index, `not tried: ${reason} on earlier rows`);
    }
  }
  if (task.failures.size < task.rowCount * width) return false;
  answerTask(
    task,
    Array.from({ length: task.rowCount * width }, () => ({})),
  );
  return true;
}
