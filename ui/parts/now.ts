import { useSyncExternalStore } from "react";

const TICK_MS = 5_000;
const listeners = new Set<() => void>();
let now = Date.now();
/** How far the browser's clock is behind the service's. */
let behindMs = 0;
let timer: ReturnType<typeof setInterval> | undefined;

function tick(): void {
  now = Date.now() + behindMs;
  for (const listener of listeners) listener();
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  if (timer === undefined) {
    now = Date.now() + behindMs;
    timer = setInterval(tick, TICK_MS);
  }
  return () => {
    listeners.delete(listener);
    if (listeners.size > 0) return;
    clearInterval(timer);
    timer = undefined;
  };
}

/** Sets the clock by the `Date` of an answer, which has whole seconds and is slightly old. */
const PRECISION_MS = 3_000;

/** All times on the pages are the service's, so they are compared with its clock. `date` is the value of an answer's header. */
export function noteServiceTime(date: string | null): void {
  const ms = Date.parse(date ?? "") - Date.now();
  if (Number.isNaN(ms) || Math.abs(ms - behindMs) < PRECISION_MS) return;
  behindMs = Math.abs(ms) < PRECISION_MS ? 0 : ms;
  tick();
}

/** The service's time, shared by the whole page and updated every few seconds: for "3 minutes ago", not for anything exact. */
export const useNow = (): number => useSyncExternalStore(subscribe, () => now);
