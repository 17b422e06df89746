import { useState } from "react";
import type { ReviewRecord } from "../parts/answers.ts";
import { loadRecords } from "./review-records.ts";

/** The most records that are selected at a time. An approval takes 10,000 changes. */
export const SELECTED_MAX = 2_000;

/** The records that an edit of many applies to. */
export interface Selection {
  readonly records: readonly ReviewRecord[];
  /** Whether records are being loaded to be selected. */
  readonly isLoading: boolean;
  /** Why they could not be loaded. */
  readonly failure: Error | null;
  has(record: ReviewRecord): boolean;
  /** Selects a record or deselects it; `toRange`: also selects those between it and the last one. */
  toggle(record: ReviewRecord, index: number, toRange: boolean): void;
  /** Selects all that are shown, up to SELECTED_MAX. */
  selectAll(): void;
  clear(): void;
}

export function useSelection(shown: {
  readonly reviewId: string;
  readonly onlyInvalid: boolean;
  readonly total: number;
}): Selection {
  const [selected, setSelected] = useState<ReadonlyMap<number, ReviewRecord>>(new Map());
  const [last, setLast] = useState<number | null>(null);
  const [isLoading, setIsLoading] = useState(false);
  const [failure, setFailure] = useState<Error | null>(null);
  const add = async (first: number, count: number): Promise<void> => {
    setIsLoading(true);
    setFailure(null);
    try {
      const records = await loadRecords(shown, first, Math.min(count, SELECTED_MAX));
      setSelected(
        (before) =>
          new Map(
            [...before, ...records.map((record) => [record.ordinal, record] as const)].slice(0, SELECTED_MAX),
          ),
      );
    } catch (error) {
      setFailure(error instanceof Error ? error : new Error(String(error)));
    } finally {
      setIsLoading(false);
    }
  };
  return {
    records: [...selected.values()],
    isLoading,
    failure,
    has: ({ ordinal }) => selected.has(ordinal),
    toggle: (record, index, toRange) => {
      setLast(index);
      if (toRange && last !== null) return void add(Math.min(last, index), Math.abs(last - index) + 1);
      const next = new Map(selected);
      if (!next.delete(record.ordinal) && next.size < SELECTED_MAX) next.set(record.ordinal, record);
      setSelected(next);
    },
    selectAll: () => void add(0, shown.total),
    clear: () => {
      setSelected(new Map());
      setLast(null);
    },
  };
}
