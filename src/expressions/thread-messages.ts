/** What the main thread and an expression thread say to each other. Values travel as JSON text: it is the faster way. */

import type { Json } from "#domain/json.ts";

export interface ThreadData {
  /** Int32s at the places of `Progress`. */
  readonly progress: SharedArrayBuffer;
  /** For one evaluation. */
  readonly timeoutMs: number;
  /** CPU time of a whole task after which it goes to another thread, as it does when an evaluation takes too long; null: it stays. */
  readonly taskMs: number | null;
  /** It is for what takes long, and leaves processors to everybody else. */
  readonly standsBack: boolean;
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
  /** The root of the only one of them, as JSON text; null: they have their own. */
  readonly rootText: string | null;
}

/** `cells`: a JSON list of `Cell`s, row by row. `malformed`: the root is not JSON. `overdue`: the task takes too long here; the index of its source that did. */
export type FromThread =
  | { readonly id: number; readonly cells: string; readonly lists: readonly LongList[] }
  | { readonly id: number; readonly malformed: true }
  | { readonly id: number; readonly overdue: number };

/** A list that is too long to be parsed in one go: the index of its cell, which is empty, and JSON lists of its items. */
export interface LongList {
  readonly cell: number;
  readonly parts: readonly string[];
}

/** `v` a value, `e` the reason of a failure, neither: the expression gives nothing. `x`: it used up its time or its memory. */
export interface Cell {
  readonly v?: Json;
  readonly e?: string;
  readonly x?: true;
}

/** Of what comes after the evaluation that used up its time or memory: the caller fails with that one. */
export const NOT_TRIED: Cell = { e: "not tried: an earlier evaluation took too long", x: true };
