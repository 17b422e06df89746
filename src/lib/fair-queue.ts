/** What waits, by the name of who brought it. Names take turns, so that one with many items holds up another by one item at most. */
export class FairQueue<T, Name = string> {
  /** In the order of the next turns. */
  readonly #items = new Map<Name, T[]>();

  push(name: Name, item: T): void {
    const items = this.#items.get(name);
    if (items) items.push(item);
    else this.#items.set(name, [item]);
  }

  /** Takes the next item. A name whose first item is refused by `mayGo` is left out; undefined: there is none that may go. */
  take(mayGo: (name: Name, item: T) => boolean = () => true): T | undefined {
    for (const [name, items] of this.#items) {
      const [first] = items as [T];
      if (!mayGo(name, first)) continue;
      items.shift();
      this.#items.delete(name);
      if (items.length > 0) this.#items.set(name, items);
      return first;
    }
    return undefined;
  }

  /** Takes what a name has brought last. */
  takeLast(name: Name): T | undefined {
    const items = this.#items.get(name);
    const last = items?.pop();
    if (items?.length === 0) this.#items.delete(name);
    return last;
  }

  /** Takes out something that need not wait any more; false: it is not there. */
  remove(name: Name, item: T): boolean {
    const items = this.#items.get(name) ?? [];
    const at = items.indexOf(item);
    if (at < 0) return false;
    items.splice(at, 1);
    if (items.length === 0) this.#items.delete(name);
    return true;
  }

  /** Those that wait. */
  names(): Iterable<Name> {
    return this.#items.keys();
  }
}
