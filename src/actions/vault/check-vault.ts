import type { Database } from "#db/connection/pool.ts";
import {
  listSealed,
  SEALED_PLACES,
  type SealedPlace,
  type SealedRow,
} from "#db/credentials/sealed-places.ts";
import { originsIn, UnknownContent } from "#domain/destination.ts";
import type { SealBinding } from "#vault/binding.ts";
import { VaultError, type Vault } from "#vault/vault.ts";

const BATCH = 500;

export interface CheckedPlace {
  readonly noun: string;
  readonly checked: number;
  /** Ids of the rows that can't be opened. */
  readonly broken: readonly string[];
  /** Ids of the rows that can be opened but contain no sealed origins. */
  readonly unbound: readonly string[];
}

/** Opens every sealed value, discards the plain text, and lists those that can't be opened. */
export async function checkSealed(db: Database, vault: Vault): Promise<readonly CheckedPlace[]> {
  const places: CheckedPlace[] = [];
  for (const place of SEALED_PLACES) {
    const broken: string[] = [];
    const unbound: string[] = [];
    let checked = 0;
    for await (const rows of eachBatch(db, place, { limit: BATCH })) {
      for (const row of rows) {
        const plain = await openRow(vault, place, row);
        const state = plain ? stateOf(place, plain) : "broken";
        plain?.fill(0);
        if (state === "broken") broken.push(row.rowId);
        if (state === "unbound") unbound.push(row.rowId);
        checked++;
      }
    }
    places.push({ noun: place.noun, checked, broken, unbound });
  }
  return places;
}

function stateOf({ purpose }: SealedPlace, plain: Uint8Array): "bound" | "unbound" | "broken" {
  // The first have always had their origins sealed in; the second are never sent.
  if (purpose === "account_secret" || purpose === "webhook_secret") return "bound";
  try {
    const origins = originsIn(purpose, Buffer.from(plain).toString("utf8"));
    // A cached login without origins is replaced by a new login.
    return origins === null && purpose !== "login_session" ? "unbound" : "bound";
  } catch (error) {
    if (error instanceof UnknownContent) return "broken";
    throw error;
  }
}

/** All rows of a column, batch by batch; with `notKid` only those that another key seals. */
export async function* eachBatch(
  db: Database,
  place: SealedPlace,
  page: { readonly limit: number; readonly notKid?: string },
): AsyncGenerator<readonly SealedRow[]> {
  let afterId = "";
  for (;;) {
    const rows = await listSealed(db, place, { ...page, afterId });
    const last = rows.at(-1);
    if (!last) return;
    yield rows;
    afterId = last.rowId;
  }
}

export function bindingOf(place: SealedPlace, row: SealedRow): SealBinding {
  const { accountId, rowId, strategyId, version } = row;
  return {
    purpose: place.purpose,
    accountId,
    rowId,
    strategyId,
    ...(version === null ? {} : { version }),
  };
}

/** The caller zeroes the bytes. Undefined when the value can't be opened. */
export async function openRow(
  vault: Vault,
  place: SealedPlace,
  row: SealedRow,
): Promise<Uint8Array | undefined> {
  try {
    return await vault.open(row.sealed, bindingOf(place, row));
  } catch (error) {
    if (!(error instanceof VaultError)) throw error;
    return undefined;
  }
}
