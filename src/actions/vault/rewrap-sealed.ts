import type { Database } from "#db/connection/pool.ts";
import {
  countSealed,
  replaceSealed,
  SEALED_PLACES,
  type SealedPlace,
  type SealedRow,
} from "#db/credentials/sealed-places.ts";
import type { Keyring } from "#vault/vault.ts";
import { bindingOf, eachBatch, openRow } from "./check-vault.ts";

export interface RewrapProgress {
  readonly done: number;
  readonly total: number;
}

export interface RewrapResult {
  readonly rewrapped: number;
  /** Rows that another process has changed or deleted in the meantime. */
  readonly overtaken: number;
  /** Rows that can't be opened, as "<table> <id>". */
  readonly broken: readonly string[];
}

/**
 * Reseals everything with the vault's current key (which this vault does not change in the meantime), batch by batch, while the
 * service is running. The rows themselves are the only progress record: after a kill -9 the next rewrap continues with the rows
 * that another key still seals, and two at once do no harm. A value is opened and sealed again, not only its content key: a JWE's
 * header names the key and is authenticated with the content.
 */
export async function rewrapSealed(
  db: Database,
  vault: Keyring,
  options: { readonly batch: number; readonly onProgress: (progress: RewrapProgress) => void },
): Promise<RewrapResult> {
  const { batch, onProgress } = options;
  const { kid } = vault;
  const use = await countSealed(db);
  const total = use.filter((each) => each.kid !== kid).reduce((sum, each) => sum + each.total, 0);
  let rewrapped = 0;
  let overtaken = 0;
  const broken: string[] = [];
  onProgress({ done: 0, total });
  for (const place of SEALED_PLACES) {
    for await (const rows of eachBatch(db, place, { limit: batch, notKid: kid })) {
      const outcomes = await Promise.all(rows.map(async (row) => await resealRow(vault, place, row)));
      const changes = outcomes.filter((outcome) => typeof outcome !== "string");
      broken.push(...outcomes.filter((outcome) => typeof outcome === "string"));
      const replaced = await replaceSealed(db, place, kid, changes);
      rewrapped += replaced;
      overtaken += changes.length - replaced;
      onProgress({ done: rewrapped + overtaken + broken.length, total });
    }
  }
  // Rows that another rewrap has done at the same time were not seen here.
  onProgress({ done: total, total });
  return { rewrapped, overtaken, broken };
}

/** The row with new bytes, or its name when it can't be opened. */
async function resealRow(
  vault: Keyring,
  place: SealedPlace,
  row: SealedRow,
): Promise<{ readonly was: SealedRow; readonly sealed: Uint8Array } | string> {
  const plain = await openRow(vault, place, row);
  if (!plain) return `${place.table} ${row.rowId}`;
  try {
    return { was: row, sealed: (await vault.seal(plain, bindingOf(place, row))).sealed };
  } finally {
    plain.fill(0);
  }
}
