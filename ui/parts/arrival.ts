import { useEffect, useRef, type RefObject } from "react";

/** What is focused, the first of these that there is. */
const TARGETS = ['[aria-invalid="true"]', 'input:not([type="checkbox"]):not(:disabled)', "button"];

type Place = { readonly index: number } | null;

/**
 * Scrolls a list of which only a part is rendered to a place, and focuses what is wrong there, or else its first input, as soon as the
 * place is loaded. Places have the attribute `data-index`. `goTo` is another object each time.
 */
export function useArrival(
  list: RefObject<HTMLElement | null>,
  goTo: Place,
  scrollTo: (index: number) => void,
): void {
  const scrolledTo = useRef<Place>(null);
  const arrivedAt = useRef<Place>(null);
  // After each rendering: the place is rendered once the list has been scrolled, and has inputs once its record is loaded.
  useEffect(() => {
    if (goTo === null || goTo === arrivedAt.current) return;
    if (goTo !== scrolledTo.current) {
      scrolledTo.current = goTo;
      scrollTo(goTo.index);
    }
    const place = list.current?.querySelector(`[data-index="${goTo.index}"]`);
    const found = TARGETS.map((target) => place?.querySelector<HTMLElement>(target));
    const target = found.find((each) => each);
    if (!target) return;
    arrivedAt.current = goTo;
    target.focus();
  });
}
