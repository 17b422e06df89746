/** A queue per owner, served round-robin, so that an owner with many items delays another by at most one item. */
export class FairQueue<T, Name = string> {
  /** In round-robin order. */
  readonly #items = new Map<Name, T[]>();

  push(name: Name, item: T): void {
    const items = this.#items.get(name);
    if (items) items.push(item);
    else this.#items.set(name, [item]);
  }

  /** Takes the next item. Skips owners whose first item `mayGo` rejects; undefined: there is no such item. */
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

  /** Takes an owner's last item. */
  takeLast(name: Name): T | undefined {
    const items = this.#items.get(name);
    const last = items?.pop();
    if (items?.length === 0) this.#items.delete(name);
    return last;
  }

  /** Removes an item; false: it is not queued. */
  remove(name: Name, item: T): boolean {
    const items = this.#items.get(name) ?? [];
    const at = items.indexOf(item);
    if (at < 0) return false;
    items.splice(at, 1);
    if (items.length === 0) this.#items.delete(name);
    return true;
  }

  /** How many items of an owner are queued. */
  count(name: Name): number {
    return this.#items.get(name)?.length ?? 0;
  }

  /** The owners of queued items. */
  names(): Iterable<Name> {
    return this.#items.keys();
  }
}
