/** What the main thread and an expression thread say to each other. Values travel as JSON text: it is the faster way. */

import type { Json } from "#domain/json.ts";

export interface ThreadData {
  /** Int32s at the places of `Progress`. */
  readonly progress: SharedArrayBuffer;
  readonly timeoutMs: number;
}

/** Where the thread is, readable even when it hangs or is dead. */
export const Progress = {
  /** Id of the task whose evaluation is going on; 0 for none. */
  task: 0,
  /** Index of that evaluation: row × sources + source; -1 while the task's data is read. */
  cell: 1,
  /** Changes whenever the other two do. */
  ticks: 2,
} as const;

export const PROGRESS_BYTES = 12;

/** An expression that ran out of time on so many rows of a batch isn't tried on the rest. */
export const STRIKES_MAX = 3;

export type ToThread =
  | { readonly kind: "bind"; readonly id: number; readonly payload: string }
  | { readonly kind: "release"; readonly id: number }
  | TaskMessage;

export interface TaskMessage {
  readonly kind: "task";
  readonly id: number;
  readonly binding: number;
  readonly sources: readonly string[];
  /** A JSON list of scopes. */
  readonly rows: string;
  /** Indexes of evaluations that are known to fail. */
  readonly skip: readonly number[];
}

export interface FromThread {
  readonly id: number;
  /** A JSON list of `Cell`s, row by row. */
  readonly cells: string;
}

/** `v` a value, `e` the reason of a failure, neither: the expression gives nothing. */
export interface Cell {
  readonly v?: Json;
  readonly e?: string;
}
