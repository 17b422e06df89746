import { signUnsignedRows } from "#db/signing/first-signing.ts";
import type { Database } from "#db/connection/pool.ts";
import { SIGNED_TABLES, type SignedKind } from "#db/signing/signed-tables.ts";

/** Rows that the test has put there, or changed, by SQL: from now on they are as if the service had written them. */
export async function signAgain(db: Database, ...kinds: readonly SignedKind[]): Promise<void> {
  await db.transaction(async (tx) => {
    for (const kind of kinds) await sign(tx, kind);
  });
}

/**
 * `set` and `where` of an UPDATE, whose rows are then as if the service had written them. At once: a service that works meanwhile reads
 * none of them unsigned.
 */
export async function rewriteSigned(
  db: Database,
  kind: SignedKind,
  assignment: string,
  values: readonly unknown[],
): Promise<void> {
  await db.transaction(async (tx) => {
    await tx.query(`update ${SIGNED_TABLES[kind].table} set ${assignment}`, values);
    await sign(tx, kind);
  });
}

async function sign(tx: Database, kind: SignedKind): Promise<void> {
  await tx.query(`update ${SIGNED_TABLES[kind].table} set row_mac = null`);
  await signUnsignedRows(tx, kind);
}
