import { useQueries, type QueryKey } from "@tanstack/react-query";
import { useEffect, useRef, useState } from "react";

const PAGE_RECORDS = 200;
/** How long a page that is out of sight is kept. */
const KEPT_MS = 20_000;
/** Pages are asked for no more often: somebody who drags through all records skips most of them. */
const ASK_EVERY_MS = 150;
/** More are never in sight; while the two ends are told one after the other they may be far apart. */
const PAGES_MAX = 2;

/** The number as it was at most a moment ago. */
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

/** The pages around the places in sight, of records that never change; the first page always. */
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
      // Scrolling through a hundred thousand records shall not keep them all.
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

/** The names of all columns that were ever in sight, in the order in which they came: none disappears while somebody scrolls. */
export function useColumns(names: Iterable<string>): readonly string[] {
  const [known, setKnown] = useState<readonly string[]>([]);
  const added = [...new Set(names)].filter((name) => !known.includes(name));
  if (added.length === 0) return known;
  const all = [...known, ...added];
  setKnown(all);
  return all;
}
