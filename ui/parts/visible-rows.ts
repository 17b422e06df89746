import { useVirtualizer } from "@tanstack/react-virtual";
import { useRef, type KeyboardEvent } from "react";

/** Renders only the visible rows of a long table. `rowPx` is the height of a row, in pixels. */
export function useVisibleRows(total: number, rowPx: number) {
  const ref = useRef<HTMLElement>(null);
  const rows = useVirtualizer({
    count: total,
    getScrollElement: () => ref.current,
    estimateSize: () => rowPx,
    overscan: 10,
  });
  const visible = rows.getVirtualItems();
  const [first, last] = [visible[0], visible.at(-1)];
  /**
   * Home and End, when the table itself has the focus. The browser would scroll smoothly to the end
   * that it knows, and stop short of it once a row on the way turns out to be higher than `rowPx`.
   */
  function onKeyDown(event: KeyboardEvent) {
    const { key, target, currentTarget } = event;
    if ((key !== "Home" && key !== "End") || target !== currentTarget) return;
    event.preventDefault();
    if (key === "Home") rows.scrollToIndex(0, { align: "start" });
    else rows.scrollToIndex(total - 1, { align: "end" });
  }
  return {
    /** What the element that scrolls needs. */
    box: { ref, onKeyDown },
    visible,
    firstIndex: first?.index ?? 0,
    lastIndex: last?.index ?? 0,
    /** The space of the rows above and below the rendered ones, in pixels. */
    above: first?.start ?? 0,
    below: rows.getTotalSize() - (last?.end ?? 0),
    measure: rows.measureElement,
    scrollTo: (index: number): void => rows.scrollToIndex(index, { align: "center" }),
  };
}
