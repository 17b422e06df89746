import { useCallback, useSyncExternalStore } from "react";
import { openDrafts } from "./drafts.ts";

const PAUSE_MS = 250;
let timer: ReturnType<typeof setTimeout> | undefined;

/** Stored per tab: other tabs, and the browser after a restart, don't have it. */
export const drafts = openDrafts(window.sessionStorage, (flush) => {
  clearTimeout(timer);
  timer = setTimeout(flush, PAUSE_MS);
});

let isLeaving = false;

/** Navigates to another site that redirects back here: the drafts are kept, so no warning is shown. */
export function leaveFor(url: string): void {
  isLeaving = true;
  window.location.assign(url);
}

/** Reloads the page and keeps the drafts. */
export function reloadPage(): void {
  isLeaving = true;
  window.location.reload();
}

window.addEventListener("pagehide", () => drafts.flush());
// The draft is lost when the tab is closed, which can't be told from a reload.
window.addEventListener("beforeunload", (event) => {
  drafts.flush();
  if (!isLeaving && drafts.isAny()) event.preventDefault();
});

const subscribe = (listener: () => void): (() => void) => drafts.subscribe(listener);

/** A draft of the signed-in operator; undefined: there is none. Setting undefined removes it. */
export function useDraft<T>(
  ...key: readonly string[]
): readonly [draft: T | undefined, set: (next: T | undefined) => void] {
  const draft = useSyncExternalStore(subscribe, () => drafts.read<T>(key));
  const name = JSON.stringify(key);
  const set = useCallback(
    (next: T | undefined) => {
      const parts = JSON.parse(name) as readonly string[];
      if (next === undefined) drafts.remove(parts);
      else drafts.write(parts, next);
    },
    [name],
  );
  return [draft, set];
}
