import { useQueries, type QueryKey } from "@tanstack/react-query";
import { useEffect, useRef, useState } from "react";

/** The largest page that the API gives. */
export const PAGE_RECORDS = 200;
/** How long a page that is not visible is cached. */
const KEPT_MS = 20_000;
/** The shortest time between requests for pages, so that dragging through all records skips most of them. */
const ASK_EVERY_MS = 150;
/** More are never visible, but while the two ends are updated one after the other they may be far apart. */
const PAGES_MAX = 2;

/** The number, updated at most once in an interval. */
function usePaced(number: number): number {
  const [told, setTold] = useState(number);
  const toldAtMs = useRef(0);
  useEffect(() => {
    if (number === told) return;
    const tell = (): void => {
      toldAtMs.current = performance.now();
      setTold(number);
    };
    const timer = setTimeout(tell, Math.max(0, toldAtMs.current + ASK_EVERY_MS - performance.now()));
    return () => clearTimeout(timer);
  }, [number, told]);
  return told;
}

interface PageOf<R> {
  readonly queryKey: QueryKey;
  readonly queryFn: (context: { readonly signal: AbortSignal }) => Promise<{ readonly items: readonly R[] }>;
}

/** The pages around the visible places, of records that never change, and always the first page. */
export function usePagedRecords<R>(
  pageOf: (query: { readonly from: number; readonly limit: number }) => PageOf<R>,
  first: number,
  last: number,
) {
  const from = usePaced(Math.floor(first / PAGE_RECORDS));
  const to = usePaced(Math.floor(last / PAGE_RECORDS));
  const wanted = new Set([0]);
  for (let page = from; page <= Math.min(to, from + PAGES_MAX); page++) wanted.add(page);
  const pages = [...wanted];
  const answers = useQueries({
    queries: pages.map((page) => ({
      ...pageOf({ from: page * PAGE_RECORDS, limit: PAGE_RECORDS }),
      staleTime: Infinity,
      // Scrolling through a hundred thousand records must not keep all of them in memory.
      gcTime: KEPT_MS,
    })),
  });
  const byPage = new Map(pages.map((page, at) => [page, answers[at]?.data?.items]));
  const failed = answers.find(({ error }) => error);
  return {
    recordAt: (index: number): R | undefined =>
      byPage.get(Math.floor(index / PAGE_RECORDS))?.[index % PAGE_RECORDS],
    loaded: [...byPage.values()].flatMap((items) => items ?? []),
    failure: failed?.error ?? null,
    retry: () => void failed?.refetch(),
  };
}

/** The names of all columns that have been visible, in the order of their appearance, so that none disappears while scrolling. */
export function useColumns(names: Iterable<string>): readonly string[] {
  const [known, setKnown] = useState<readonly string[]>([]);
  const added = [...new Set(names)].filter((name) => !known.includes(name));
  if (added.length === 0) return known;
  const all = [...known, ...added];
  setKnown(all);
  return all;
}
