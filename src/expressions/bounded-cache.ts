/** A map that evicts its least recently used entry. */
export interface BoundedCache<V> {
  /** The value of `key`; if it isn't cached, `make` creates it. */
  get(key: string, make: (key: string) => V): V;
}

export function boundedCache<V>(entriesMax: number): BoundedCache<V> {
  const entries = new Map<string, V>();
  return {
    get(key, make) {
      const held = entries.has(key);
      const value = held ? (entries.get(key) as V) : make(key);
      entries.delete(key);
      entries.set(key, value);
      if (entries.size > entriesMax) {
        for (const oldest of entries.keys()) {
          entries.delete(oldest);
          break;
        }
      }
      return value;
    },
  };
}
