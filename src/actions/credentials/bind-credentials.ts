import { recordAudit } from "#db/audit-entries.ts";
import { readClock } from "#db/connection/clock.ts";
import { findStrategy } from "#db/config-documents.ts";
import {
  findBindingEntry,
  findBoundMark,
  insertBoundMark,
  noteOrigins,
} from "#db/credentials/credential-binding.ts";
import type { Database } from "#db/connection/pool.ts";
import {
  replaceSealed,
  SEALED_PLACES,
  type SealedPlace,
  type SealedRow,
} from "#db/credentials/sealed-places.ts";
import { originsIn, UnknownContent, withOrigins, type SealedKind } from "#domain/destination.ts";
import { RowRefused } from "#domain/refused-row.ts";
import { must } from "#lib/assert.ts";
import type { Log } from "#lib/log.ts";
import type { Signing } from "#lib/signing.ts";
import { credentialOrigins } from "#strategies/registry.ts";
import type { Sealed, Vault } from "#vault/vault.ts";
import { bindingOf, eachBatch, openRow } from "#actions/vault/check-vault.ts";

/** Whether credentials from before this release were bound to their origins. */
export type BindingState =
  | { readonly kind: "bound"; readonly atMs: number }
  /** Not yet. */
  | { readonly kind: "unbound" }
  /** They were bound, but the mark that records it was changed or removed. */
  | { readonly kind: "tampered"; readonly reason: string };

export async function readBindingState(db: Database, signing: Signing): Promise<BindingState> {
  const mark = await findBoundMark(db);
  if (mark && signing.verifyBoundMark(mark.atMs, mark.mac)) return { kind: "bound", atMs: mark.atMs };
  if (mark)
    return {
      kind: "tampered",
      reason: "the mark in the table `installation` was not made with this installation's signing key",
    };
  const entryId = await findBindingEntry(db);
  if (entryId === undefined) return { kind: "unbound" };
  return {
    kind: "tampered",
    reason: `the table \`installation\` has no mark, and the audit entry ${entryId} says that it was made`,
  };
}

/** The places that hold credentials and values derived from them. */
export type CredentialPlace = SealedPlace & { readonly purpose: SealedKind };

export const CREDENTIAL_PLACES: readonly CredentialPlace[] = SEALED_PLACES.flatMap((place) =>
  // The first always had origins; the second is never sent.
  place.purpose === "account_secret" || place.purpose === "webhook_secret"
    ? []
    : [{ ...place, purpose: place.purpose }],
);

const BATCH = 200;
/** Rows written concurrently are processed again; an older process that keeps writing them does not block us forever. */
const PASSES_MAX = 10;

/**
 * Seals the current origins of its strategy into every value from before this release. This happens once per installation: a mark
 * and an audit entry record it, and from then on a value without origins, such as a restored old one, is never sent. After a kill
 * -9 the next start continues; concurrent calls are safe.
 */
export async function bindCredentials(db: Database, vault: Vault, signing: Signing, log: Log): Promise<void> {
  const state = await readBindingState(db, signing);
  if (state.kind === "bound") return;
  if (state.kind === "tampered")
    return log.error({ alarm: "credentials_bound" }, `${state.reason}; nothing more is bound`);
  const bound = new Map(CREDENTIAL_PLACES.map(({ purpose }) => [purpose, 0]));
  const unopened = new Set<string>();
  for (let pass = 1, overtaken = 1; overtaken > 0 && pass <= PASSES_MAX; pass++) {
    overtaken = 0;
    for (const place of CREDENTIAL_PLACES) {
      const done = await bindPlace(db, vault, place);
      bound.set(place.purpose, (bound.get(place.purpose) ?? 0) + done.bound);
      overtaken += done.overtaken;
      for (const id of done.unopened) unopened.add(`${place.table} ${id}`);
    }
  }
  await mark(db, signing, bound, unopened.size);
  const counts = { ...Object.fromEntries(bound), unopened: [...unopened].slice(0, 20) };
  if ([...bound.values()].some((count) => count > 0) || unopened.size > 0)
    log.info(counts, "credentials from before this release are bound to the origins of their strategies");
}

async function mark(
  db: Database,
  signing: Signing,
  bound: ReadonlyMap<SealedKind, number>,
  unopened: number,
): Promise<void> {
  await db.transaction(async (tx) => {
    const atMs = Math.floor(await readClock(tx));
    if (!(await insertBoundMark(tx, { atMs, mac: signing.boundMark(atMs) }))) return;
    await recordAudit(tx, signing.audit, {
      accountId: null,
      actor: { kind: "service" },
      action: "credential.bind",
      subjectId: "installation",
      detail: {
        credentials: bound.get("credential") ?? 0,
        cached_logins: bound.get("login_session") ?? 0,
        oauth_tokens: bound.get("oauth_token") ?? 0,
        unopened,
      },
    });
  });
}

async function bindPlace(
  db: Database,
  vault: Vault,
  place: CredentialPlace,
): Promise<{ readonly bound: number; readonly overtaken: number; readonly unopened: readonly string[] }> {
  let bound = 0;
  let overtaken = 0;
  const unopened: string[] = [];
  const inForce = new Map<string, readonly string[] | null>();
  for await (const rows of eachBatch(db, place, { limit: BATCH })) {
    for (const { accountId, strategyId } of rows) {
      inForce.set(`${accountId}/${strategyId}`, await originsInForce(db, accountId, strategyId));
    }
    const outcomes = await Promise.all(
      rows.map(async (row) =>
        bindRow(vault, place, row, inForce.get(`${row.accountId}/${row.strategyId}`) ?? null),
      ),
    );
    unopened.push(...outcomes.filter((outcome) => typeof outcome === "string"));
    const read = outcomes.filter((outcome) => typeof outcome !== "string");
    const changes = read.flatMap(({ was, fresh }) => (fresh === null ? [] : [{ was, ...fresh }]));
    // A key may have been promoted in the middle of a batch.
    for (const [kid, sealed] of Map.groupBy(changes, (change) => change.kid)) {
      const replaced = await replaceSealed(db, place, kid, sealed);
      bound += replaced;
      overtaken += sealed.length - replaced;
    }
    if (place.purpose === "credential")
      await noteOrigins(
        db,
        read.map(({ was, origins }) => ({ credentialId: was.rowId, origins })),
      );
  }
  return { bound, overtaken, unopened };
}

/** null: this installation did not write the row, so nothing is bound, and an alarm is raised. */
async function originsInForce(
  db: Database,
  accountId: string,
  strategyId: string,
): Promise<readonly string[] | null> {
  try {
    const { strategy } = must(await findStrategy(db, accountId, strategyId), "a credential's strategy");
    return credentialOrigins(strategy);
  } catch (error) {
    if (error instanceof RowRefused) return null;
    throw error;
  }
}

/**
 * The row with its origins sealed in; `fresh` is null if it already had origins. Returns the row's id if it can't be opened, or
 * if its origins are unknown.
 */
async function bindRow(
  vault: Vault,
  place: CredentialPlace,
  row: SealedRow,
  inForce: readonly string[] | null,
) {
  const plain = await openRow(vault, place, row);
  if (!plain) return row.rowId;
  const text = Buffer.from(plain).toString("utf8");
  plain.fill(0);
  try {
    const origins = originsIn(place.purpose, text);
    if (origins !== null) return { was: row, origins, fresh: null };
    if (inForce === null) return row.rowId;
    return { was: row, origins: inForce, fresh: await sealWithOrigins(vault, place, row, text, inForce) };
  } catch (error) {
    // A forged row must not prevent the service from starting.
    if (error instanceof UnknownContent) return row.rowId;
    throw error;
  }
}

/** The same content, bound to its row as before, with these origins. */
export async function sealWithOrigins(
  vault: Vault,
  place: CredentialPlace,
  row: SealedRow,
  plain: string,
  origins: readonly string[],
): Promise<Sealed> {
  const bytes = Buffer.from(withOrigins(place.purpose, plain, origins), "utf8");
  const sealed = await vault.seal(bytes, bindingOf(place, row));
  bytes.fill(0);
  return sealed;
}
