type Metadata = Readonly<Record<string, string>>;

/** Metadata in which callers name whose run, session or credential it is, the better one first (docs/dashboard.md#pages). */
const NAMES = ["customer", "customer_name", "customer_id"] as const;

const keyOf = (metadata: Metadata): string | undefined => NAMES.find((name) => Object.hasOwn(metadata, name));

/** Whose it is, by its metadata; null: it does not say. */
export function customerOf(metadata: Metadata): string | null {
  const key = keyOf(metadata);
  return key === undefined ? null : (metadata[key] ?? null);
}

/** What the metadata says besides. */
export function othersOf(metadata: Metadata): readonly (readonly [name: string, value: string])[] {
  const key = keyOf(metadata);
  return Object.entries(metadata).filter(([name]) => name !== key);
}
