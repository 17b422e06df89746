/** The methods of `Storage` that drafts use. */
export interface DraftStorage {
  readonly length: number;
  key(index: number): string | null;
  getItem(name: string): string | null;
  setItem(name: string, text: string): void;
  removeItem(name: string): void;
}

const PREFIX = "latchkey draft ";

/**
 * Unsent input of operators; each value is JSON. It survives navigation, a reload and a sign-in of the same operator in the same
 * tab. Closing the tab, signing out, or another operator's sign-in removes it.
 */
export interface Drafts {
  /** From now on drafts belong to this operator; those of others are removed. */
  ownBy(operatorId: string): void;
  /** The same object until it changes; undefined: there is none. */
  read<T>(key: readonly string[]): T | undefined;
  write(key: readonly string[], value: unknown): void;
  remove(key: readonly string[]): void;
  /** Removes every draft. */
  clear(): void;
  /** Whether there is a draft. */
  isAny(): boolean;
  /** Writes the changes since the last call to the storage. */
  flush(): void;
  subscribe(listener: () => void): () => void;
}

/** `defer` debounces: otherwise each key press would write the whole draft. */
export function openDrafts(storage: DraftStorage, defer: (flush: () => void) => void): Drafts {
  const listeners = new Set<() => void>();
  const values = new Map<string, unknown>();
  const unwritten = new Set<string>();
  let owner = "";

  const nameOf = (key: readonly string[]): string => `${PREFIX}${JSON.stringify([owner, ...key])}`;
  const storedNames = (): readonly string[] =>
    Array.from({ length: storage.length }, (_, index) => storage.key(index) ?? "").filter((name) =>
      name.startsWith(PREFIX),
    );
  const tell = (): void => {
    for (const listener of listeners) listener();
  };
  const flush = (): void => {
    for (const name of unwritten) {
      try {
        storage.setItem(name, JSON.stringify(values.get(name)));
      } catch {
        // The storage is full or not available: the draft is kept in memory, and the outdated stored copy is removed.
        storage.removeItem(name);
      }
    }
    unwritten.clear();
  };
  const forget = (isForgotten: (name: string) => boolean): void => {
    for (const name of [...values.keys(), ...storedNames()].filter(isForgotten)) {
      values.delete(name);
      unwritten.delete(name);
      storage.removeItem(name);
    }
    tell();
  };
  const read = (name: string): unknown => {
    if (values.has(name)) return values.get(name);
    const text = storage.getItem(name);
    if (text === null) return undefined;
    const value: unknown = JSON.parse(text);
    values.set(name, value);
    return value;
  };
  return {
    ownBy: (operatorId) => {
      if (owner === operatorId) return;
      owner = operatorId;
      forget((name) => !name.startsWith(`${PREFIX}${JSON.stringify([owner]).slice(0, -1)},`));
    },
    // The stored value has the type that was written under the key.
    read: <T>(key: readonly string[]) => read(nameOf(key)) as T | undefined,
    write: (key, value) => {
      const name = nameOf(key);
      values.set(name, value);
      unwritten.add(name);
      defer(flush);
      tell();
    },
    remove: (key) => {
      const removed = nameOf(key);
      if (read(removed) !== undefined) forget((name) => name === removed);
    },
    clear: () => forget(() => true),
    isAny: () => values.size > 0 || storedNames().length > 0,
    flush,
    subscribe: (listener) => {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
  };
}
