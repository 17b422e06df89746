/** What happens at a moment of the simulation. Of the same moment the one that was planned first comes first. */
export interface SimEvent {
  readonly atMs: number;
  readonly order: number;
  readonly label: string;
  readonly act: () => void;
  isOff: boolean;
}

const isBefore = (one: SimEvent, other: SimEvent): boolean =>
  one.atMs < other.atMs || (one.atMs === other.atMs && one.order < other.order);

/** Events in the order of their moments: a binary heap. */
export class EventQueue {
  readonly #heap: SimEvent[] = [];

  push(event: SimEvent): void {
    const heap = this.#heap;
    let at = heap.push(event) - 1;
    while (at > 0) {
      const parent = (at - 1) >> 1;
      const above = heap[parent] as SimEvent;
      if (!isBefore(event, above)) break;
      heap[at] = above;
      at = parent;
    }
    heap[at] = event;
  }

  /** The next one that was not called off. */
  pop(): SimEvent | undefined {
    for (let event = this.#take(); event; event = this.#take()) if (!event.isOff) return event;
    return undefined;
  }

  #take(): SimEvent | undefined {
    const heap = this.#heap;
    const [first] = heap;
    const last = heap.pop();
    if (first === undefined || last === undefined || heap.length === 0) return first;
    let at = 0;
    for (;;) {
      let child = 2 * at + 1;
      const [left, right] = [heap[child], heap[child + 1]];
      if (left === undefined) break;
      if (right !== undefined && isBefore(right, left)) child++;
      const next = heap[child] as SimEvent;
      if (!isBefore(next, last)) break;
      heap[at] = next;
      at = child;
    }
    heap[at] = last;
    return first;
  }
}
