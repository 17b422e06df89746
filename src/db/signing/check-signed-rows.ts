import type { RowRefused } from "#domain/refused-row.ts";
import { recordAudit } from "#db/audit-entries.ts";
import type { Database } from "#db/connection/pool.ts";
import { clearRowAlarms, listRowAlarms } from "./row-alarms.ts";
import { findDeleted, forgetAlarm, forgetFloors, guardOf, readGenuine, signAbove } from "./signed-rows.ts";
import {
  SIGNED_KINDS,
  SIGNED_TABLES,
  signedColumns,
  type SignedKind,
  type SignedRow,
  type SignedTable,
} from "./signed-tables.ts";

const BATCH = 500;
const ALARMS_MAX = 10_000;

/**
 * Verifies the rows of all kinds, used or not, and raises alarms; clears alarms of rows that verify again or are gone. `versions`: also
 * reads and verifies all documents.
 */
export async function checkSignedRows(
  db: Database,
  { versions }: { readonly versions: boolean },
): Promise<{ readonly checked: number; readonly refused: readonly RowRefused[] }> {
  forgetFloors(db);
  const kinds = SIGNED_KINDS.filter((kind) => versions || !isVersion(kind));
  const refused: RowRefused[] = [];
  let checked = 0;
  for (const kind of kinds) {
    const found = await checkKind(db, kind);
    checked += found.checked;
    refused.push(...found.refused);
  }
  const wrong = new Set(refused.map(({ kind, id }) => `${kind}/${id}`));
  const repaired = (await listRowAlarms(db, ALARMS_MAX)).filter(
    ({ kind, id }) => kinds.some((each) => each === kind) && !wrong.has(`${kind}/${id}`),
  );
  await clearRowAlarms(db, repaired);
  for (const alarm of repaired) forgetAlarm(db, alarm);
  return { checked, refused };
}

const isVersion = (kind: SignedKind): boolean => (SIGNED_TABLES[kind] as SignedTable).versionOf !== undefined;

interface CheckedKind {
  readonly checked: number;
  readonly refused: readonly RowRefused[];
  readonly refusedRows: readonly SignedRow[];
}

async function checkKind(db: Database, kind: SignedKind): Promise<CheckedKind> {
  const { table, key }: SignedTable = SIGNED_TABLES[kind];
  const columns = columnsOf(kind);
  const places = columns.map((_, at) => `$${at + 1}`).join(", ");
  const refused: RowRefused[] = [];
  const refusedRows: SignedRow[] = [];
  let checked = 0;
  for (let after: readonly unknown[] | null = null; ;) {
    const from: readonly unknown[] | null = after;
    let batch: readonly SignedRow[] = [];
    const found = await readGenuine(
      db,
      async () =>
        (batch = await db.query<SignedRow>(
          `select ${signedColumns(kind, table)} from ${table}
           ${from === null ? "" : `where (${columns.join(", ")}) > (${places})`} order by ${columns.join(", ")} limit ${BATCH}`,
          from ?? [],
        )),
      (row) => [{ kind, row }],
    );
    checked += batch.length;
    refused.push(...found.refused);
    refusedRows.push(...found.refusedRows);
    const last = batch.at(-1) as Record<string, unknown> | undefined;
    if (batch.length < BATCH || last === undefined) break;
    after = Object.keys(key).map((name) => last[name]);
  }
  return { checked, refused: [...refused, ...(await listDeleted(db, kind))], refusedRows };
}

/** For rows that the service never deletes. */
async function listDeleted(db: Database, kind: SignedKind): Promise<readonly RowRefused[]> {
  const { table, keptFor }: SignedTable = SIGNED_TABLES[kind];
  if (keptFor === undefined) return [];
  const missing = await db.query<{ id: string }>(
    `select id from ${keptFor} where not exists (select from ${table} where ${columnsOf(kind).join()} = ${keptFor}.id)`,
  );
  return await findDeleted(
    db,
    kind,
    missing.map(({ id }) => id),
  );
}

const columnsOf = (kind: SignedKind): readonly string[] => {
  const { table, key }: SignedTable = SIGNED_TABLES[kind];
  return Object.values(key).map((column) => column.replaceAll("@", table));
};

/**
 * After a restore, on an operator's command: signs genuine but outdated rows again, each with an audit entry. No other row is signed.
 * Returns their number.
 */
export async function acceptOutdatedRows(db: Database): Promise<number> {
  forgetFloors(db);
  let accepted = 0;
  for (const kind of SIGNED_KINDS) {
    const { refused, refusedRows } = await checkKind(db, kind);
    for (const [at, { id, fault }] of refused.entries()) {
      const row = refusedRows[at];
      if (fault !== "outdated" || row === undefined) continue;
      if (await acceptRow(db, kind, id, row)) accepted++;
    }
  }
  await checkSignedRows(db, { versions: true });
  return accepted;
}

/** False: the row was changed in the meantime. */
async function acceptRow(db: Database, kind: SignedKind, id: string, row: SignedRow): Promise<boolean> {
  const { table, key }: SignedTable = SIGNED_TABLES[kind];
  return await db.transaction(async (tx) => {
    const { serial, mac, audited } = await signAbove(tx, kind, row);
    const named = row as unknown as Record<string, unknown>;
    const isRow = columnsOf(kind).map((column, at) => `${column} = $${at + 4}`);
    const changed = await tx.query(
      `update ${table} set row_serial = $1, row_mac = $2 where row_mac = $3 and ${isRow.join(" and ")} returning 1`,
      [serial, mac, row.rowMac, ...Object.keys(key).map((name) => named[name])],
    );
    if (changed.length === 0) return false;
    await recordAudit(tx, guardOf(tx).audit, {
      accountId: null,
      actor: { kind: "cli" },
      action: "row.sign",
      subjectId: id,
      detail: { kind, after_restore: true, ...audited },
    });
    return true;
  });
}
