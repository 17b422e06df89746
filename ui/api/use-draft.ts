import { useCallback, useSyncExternalStore } from "react";
import { openDrafts } from "./drafts.ts";

const PAUSE_MS = 250;
let timer: ReturnType<typeof setTimeout> | undefined;

/** Of this tab: other tabs and a browser that is opened again have none of it. */
export const drafts = openDrafts(window.sessionStorage, (flush) => {
  clearTimeout(timer);
  timer = setTimeout(flush, PAUSE_MS);
});

let isLeaving = false;

/** Goes to another site that leads back here: the drafts wait, so nobody is asked about them. */
export function leaveFor(url: string): void {
  isLeaving = true;
  window.location.assign(url);
}

/** Loads the same page anew, drafts and all. */
export function reloadPage(): void {
  isLeaving = true;
  window.location.reload();
}

window.addEventListener("pagehide", () => drafts.flush());
// The draft ends with the tab, and a reload looks like its end.
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
