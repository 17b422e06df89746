import { NOT_TRIED } from "./thread-messages.ts";
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
  /** The root of the only row, instead of a root in its scope. */
  readonly rootText: string | null;
  /** How often a thread died before it reported that it had started this task. */
  attempts: number;
  /** Its variables were released: the result is no longer needed. */
  isDropped: boolean;
  readonly resolve: (cells: readonly Cell[]) => void;
  readonly reject: (error: Error) => void;
}

/**
 * Answers a task whose evaluation `place` (-1: reading its rows) killed its thread. Earlier results are lost and not computed
 * again: the caller fails with this one.
 */
export function failTask(task: Task, place: number, reason: string): void {
  const failed: Cell = { e: reason, x: true };
  const cells = Array.from({ length: task.rowCount * task.sources.length }, (_, index): Cell => {
    if (index < place) return {};
    return index === Math.max(0, place) ? failed : NOT_TRIED;
  });
  task.resolve(cells);
}

export function dropTask(task: Task): void {
  task.isDropped = true;
  task.reject(new Error("the variables of these expressions have been released"));
}
