import { useQueryClient, type QueryClient } from "@tanstack/react-query";
import { useEffect } from "react";
import {
  listReviews,
  listRuns,
  listWriteGroups,
  listWrites,
  noteAtReview,
  readReview,
  readRun,
  watchChanges,
} from "./operations.ts";
import { keyOf, setStreaming } from "./queries.ts";
import { addressOf } from "./request.ts";

/** Changes come in bursts, so the shown data is reloaded at most this often. */
const GATHER_MS = 500;
/** After a refusal (too many dashboards are open), how often to try again. */
const AGAIN_MS = 60_000;

interface Changes {
  readonly runs: readonly { readonly id: string }[];
  readonly reviews: readonly { readonly id: string }[];
}

/**
 * Receives notifications of changes while the page is visible, and reloads the changed data. Without them, pages are refreshed
 * every few seconds.
 */
export function useWatch(): void {
  const client = useQueryClient();
  useEffect(() => watch(client), [client]);
}

function watch(client: QueryClient): () => void {
  const due = new Map<string, readonly unknown[]>();
  let source: EventSource | null = null;
  let timer: ReturnType<typeof setTimeout> | undefined;
  let again: ReturnType<typeof setTimeout> | undefined;
  const readAgain = (...keys: (readonly unknown[])[]): void => {
    for (const key of keys) due.set(JSON.stringify(key), key);
    timer ??= setTimeout(() => {
      timer = undefined;
      for (const queryKey of due.values()) void client.invalidateQueries({ queryKey });
      due.clear();
    }, GATHER_MS);
  };
  const everything = (): void =>
    readAgain(
      keyOf(listRuns),
      keyOf(readRun),
      keyOf(listReviews),
      keyOf(readReview),
      keyOf(listWrites),
      keyOf(listWriteGroups),
    );
  const open = (): void => {
    source = new EventSource(addressOf(watchChanges, {}));
    source.addEventListener("open", () => {
      setStreaming(true);
      everything();
    });
    source.addEventListener("stale", everything);
    source.addEventListener("changes", ({ data }: MessageEvent<string>) => {
      const { runs, reviews } = JSON.parse(data) as Changes;
      if (runs.length > 0) readAgain(keyOf(listRuns), keyOf(listWrites), keyOf(listWriteGroups));
      if (reviews.length > 0) readAgain(keyOf(listReviews));
      for (const { id } of runs) readAgain(keyOf(readRun, { params: { runId: id } }));
      for (const { id } of reviews)
        readAgain(keyOf(readReview, { params: { reviewId: id } }), [
          ...keyOf(noteAtReview),
          { params: { reviewId: id } },
        ]);
    });
    source.addEventListener("error", () => {
      setStreaming(false);
      // If the connection is lost, the browser reconnects automatically; if it was refused, it doesn't.
      if (source?.readyState === EventSource.CLOSED) again = setTimeout(open, AGAIN_MS);
    });
  };
  open();
  return () => {
    setStreaming(false);
    source?.close();
    clearTimeout(timer);
    clearTimeout(again);
  };
}
