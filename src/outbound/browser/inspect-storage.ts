/** What one origin keeps, as far as the driver's state does not say. */
export interface StorageReport {
  /** About the bytes of local storage, session storage and IndexedDB; it stops counting above the limit. */
  readonly bytes: number;
  /** Whether IndexedDB holds a `CryptoKey`. */
  readonly hasKeys: boolean;
  readonly session: readonly (readonly [key: string, value: string])[];
}

/** The parts of the page's globals that it uses: this file is checked without the types of pages. */
interface PageGlobals {
  readonly localStorage: object;
  readonly sessionStorage: object;
  readonly CryptoKey?: new () => object;
  readonly indexedDB: {
    databases(): Promise<readonly { readonly name?: string }[]>;
    open(name: string): Request<OpenDatabase>;
  };
}

interface Request<T> {
  readonly result: T;
  onsuccess: (() => void) | null;
  onerror: (() => void) | null;
  onblocked?: (() => void) | null;
}

interface OpenDatabase {
  readonly objectStoreNames: ArrayLike<string>;
  transaction(
    names: readonly string[],
    mode: string,
  ): { objectStore(name: string): { openCursor(): Request<Cursor | null> } };
  close(): void;
}

interface Cursor {
  readonly value: unknown;
  continue(): void;
}

/** Runs in the page. The driver sends the source of this function, so it uses nothing from outside itself. */
export async function inspectStorage(bytesMax: number): Promise<StorageReport> {
  const { localStorage, sessionStorage, indexedDB, CryptoKey } = globalThis as unknown as PageGlobals;
  let bytes = 0;
  let hasKeys = false;
  const weigh = (value: unknown, depth: number): void => {
    if (bytes > bytesMax && hasKeys) return;
    if (typeof value === "string") bytes += value.length + 2;
    else if (CryptoKey !== undefined && value instanceof CryptoKey) hasKeys = true;
    else if (value instanceof ArrayBuffer || ArrayBuffer.isView(value)) bytes += value.byteLength;
    else if (value instanceof Map) for (const pair of value) weigh(pair, depth + 1);
    else if (value instanceof Set) for (const each of value) weigh(each, depth + 1);
    else if (typeof value === "object" && value !== null && depth < 64)
      for (const [key, each] of Object.entries(value)) {
        bytes += key.length + 3;
        weigh(each, depth + 1);
      }
    else bytes += 8;
  };
  const done = async <T>(request: Request<T>): Promise<T> =>
    await new Promise((resolve, reject) => {
      request.onsuccess = (): void => resolve(request.result);
      request.onerror = (): void => reject(new Error("IndexedDB"));
      request.onblocked = request.onerror;
    });
  const walk = async (database: OpenDatabase, name: string): Promise<void> => {
    const request = database.transaction([name], "readonly").objectStore(name).openCursor();
    await new Promise<void>((resolve, reject) => {
      request.onerror = (): void => reject(new Error("IndexedDB"));
      request.onsuccess = (): void => {
        const cursor = request.result;
        if (cursor === null || bytes > bytesMax) return resolve();
        weigh(cursor.value, 0);
        cursor.continue();
      };
    });
  };
  const session = Object.entries(sessionStorage) as [string, string][];
  weigh(session, 0);
  weigh(Object.entries(localStorage), 0);
  for (const { name = "" } of await indexedDB.databases()) {
    const database = await done(indexedDB.open(name));
    try {
      for (const store of Array.from(database.objectStoreNames)) await walk(database, store);
    } finally {
      database.close();
    }
  }
  return { bytes, hasKeys, session };
}
