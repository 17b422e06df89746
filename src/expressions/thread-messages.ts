/** Messages between the main thread and an expression thread. Values are sent as JSON text, which is faster than structured cloning. */

import type { Json } from "#domain/json.ts";

export interface ThreadData {
  /** Int32 values, indexed by `Progress`. */
  readonly progress: SharedArrayBuffer;
  /** Limit for one evaluation. */
  readonly timeoutMs: number;
  /** The CPU time after which a whole task moves to another thread, as it does when an evaluation takes too long. Null: it stays. */
  readonly taskMs: number | null;
  /** Whether it is for slow evaluations and yields processors to all other threads. */
  readonly isLowPriority: boolean;
}

/** The thread's progress, readable even when it hangs or is dead. */
export const Progress = {
  /** Id of the task that is being evaluated; 0 for none. */
  task: 0,
  /** Index of that evaluation: row × sources + source; -1 while the task's data is read. */
  cell: 1,
  /** Changes whenever the other two do. */
  ticks: 2,
} as const;

export const PROGRESS_BYTES = 12;

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
  /** The root of the only scope, as JSON text. Null: each scope has its own. */
  readonly rootText: string | null;
}

/**
 * `cells`: a JSON list of `Cell`s, row by row. `malformed`: the root is not JSON. `overdue`: the task takes too long here, with
 * the index of the source responsible.
 */
export type FromThread =
  | { readonly id: number; readonly cells: string; readonly lists: readonly LongList[] }
  | { readonly id: number; readonly malformed: true }
  | { readonly id: number; readonly overdue: number };

/** A list that is too long to be parsed at once: the index of its cell, which is empty, and its items as several JSON lists. */
export interface LongList {
  readonly cell: number;
  readonly parts: readonly string[];
}

/** `v`: a value. `e`: the reason for a failure. Neither: the expression has no value. `x`: it used up its time or its memory. */
export interface Cell {
  readonly v?: Json;
  readonly e?: string;
  readonly x?: true;
}

/** For evaluations after the one that used up its time or memory. The caller fails with that one. */
export const NOT_TRIED: Cell = { e: "not tried: an earlier evaluation took too long", x: true };
