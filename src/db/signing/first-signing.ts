import { must } from "#lib/assert.ts";
import type { AuditKeys } from "#lib/audit-keys.ts";
import type { RowKeys } from "#lib/row-keys.ts";
import { listSealedDetails, recordAudit } from "#db/audit-entries.ts";
import type { Database } from "#db/connection/pool.ts";
import {
  SIGNED_KINDS,
  SIGNED_TABLES,
  signedColumns,
  type SignedKind,
  type SignedTable,
} from "./signed-tables.ts";
import { signRow } from "./signed-rows.ts";

const BATCH = 200;

/** Kinds of few but important rows, which are listed one by one. */
const NAMED_MAX = 50;

export interface FirstSigning {
  /** The existing rows when their kinds were first signed; empty: all were already signed. */
  readonly signed: readonly {
    readonly kind: SignedKind;
    readonly rows: number;
    readonly ids: readonly string[];
  }[];
  /** Kinds whose mark was missing although they were signed before. It was restored, and nothing was signed. */
  readonly lostMarks: readonly SignedKind[];
}

/**
 * Signs the existing rows of a kind that this database has never signed: after an upgrade to a program that knows the kind, or in a new
 * database. It happens once: a mark that needs the signing key and an audit entry record it, and either suffices. Safe to call
 * concurrently.
 */
export async function signFirstRows(
  db: Database,
  keys: { readonly rows: RowKeys; readonly audit: AuditKeys },
): Promise<FirstSigning> {
  if ((await listUnmarked(db, keys.rows)).length === 0) return { signed: [], lostMarks: [] };
  return await db.transaction(async (tx) => {
    await tx.query(`select pg_advisory_xact_lock(hashtext('latchkey row_mark'))`);
    const unmarked = await listUnmarked(tx, keys.rows);
    const signedBefore = await listSignedBefore(tx, keys.audit, unmarked);
    const signed: FirstSigning["signed"][number][] = [];
    for (const kind of unmarked) {
      if (!signedBefore.has(kind)) signed.push({ kind, ...(await signUnsignedRows(tx, kind)) });
      await tx.query(
        `insert into row_mark (kind, mac) values ($1, $2) on conflict (kind) do update set mac = excluded.mac, signed_at = app_now()`,
        [kind, markOf(keys.rows, kind)],
      );
    }
    if (signed.length > 0) {
      await recordAudit(tx, keys.audit, {
        accountId: null,
        actor: { kind: "service" },
        action: "row.sign",
        subjectId: "installation",
        detail: Object.fromEntries(signed.map(({ kind, rows }) => [kind, rows])),
      });
    }
    for (const kind of signedBefore) {
      await recordAudit(tx, keys.audit, {
        accountId: null,
        actor: { kind: "service" },
        action: "row.refuse",
        subjectId: kind,
        detail: { kind: "row_mark", fault: "missing" },
      });
    }
    return { signed, lostMarks: [...signedBefore] };
  });
}

const markOf = (keys: RowKeys, kind: SignedKind): Buffer =>
  keys.mac({ kind: "row_mark", key: [kind], serial: 0, values: ["all rows are signed"] });

async function listUnmarked(db: Database, keys: RowKeys): Promise<readonly SignedKind[]> {
  const rows = await db.query<{ kind: string; mac: Buffer }>(`select kind, mac from row_mark`);
  const marked = new Set(rows.filter(({ kind, mac }) => isMark(keys, kind, mac)).map(({ kind }) => kind));
  return SIGNED_KINDS.filter((kind) => !marked.has(kind));
}

const isMark = (keys: RowKeys, kind: string, mac: Buffer): boolean =>
  SIGNED_KINDS.some((each) => each === kind) && markOf(keys, kind as SignedKind).equals(mac);

/** Kinds whose mark is missing, although an audit entry, a signed row, or a gap in the log shows that there was one. */
async function listSignedBefore(
  tx: Database,
  audit: AuditKeys,
  kinds: readonly SignedKind[],
): Promise<ReadonlySet<SignedKind>> {
  const told = new Set(
    (await listSealedDetails(tx, audit, "row.sign")).flatMap((detail) => Object.keys(detail)),
  );
  const isCut = await isInstallationChainCut(tx);
  const before = new Set<SignedKind>();
  for (const kind of kinds) {
    const { table }: SignedTable = SIGNED_TABLES[kind];
    const signed = await tx.query(`select 1 from ${table} where row_mac is not null limit 1`);
    if (told.has(kind) || isCut || signed.length > 0) before.add(kind);
  }
  return before;
}

/** Whether relevant entries may be missing: the chain has a gap, or was truncated. Of detached months, those are kept. */
export async function isInstallationChainCut(db: Database): Promise<boolean> {
  const rows = await db.query<{ isCut: boolean }>(
    `with detached as (select coalesce(max(last), 0) as last from audit_month where chain = 'installation')
     select count(sequence) <> coalesce(max(sequence), min(detached.last)) - min(detached.last)
       or count(sequence) + min(detached.last) <> coalesce((select count from audit_chain where chain = 'installation'), 0) as "isCut"
     from detached left join audit_entry on chain = 'installation' and sequence > detached.last`,
  );
  return rows[0]?.isCut === true;
}

/** Signs every unsigned row of a kind, whatever its content. */
export async function signUnsignedRows(
  tx: Database,
  kind: SignedKind,
): Promise<{ readonly rows: number; readonly ids: readonly string[] }> {
  const { table, key }: SignedTable = SIGNED_TABLES[kind];
  const columns = Object.values(key).map((column) => column.replaceAll("@", table));
  const ids: string[] = [];
  let count = 0;
  for (;;) {
    const rows = await tx.query<Record<string, unknown>>(
      `select ${signedColumns(kind, table)} from ${table} where row_mac is null order by ${columns.join(", ")} limit ${BATCH} for update`,
    );
    for (const row of rows) {
      const { serial, mac } = await signRow(tx, kind, row);
      const values = Object.keys(key).map((name) => must(row[name], "a part of a key"));
      const isRow = columns.map((column, at) => `${column} = $${at + 3}`).join(" and ");
      await tx.query(`update ${table} set row_serial = $1, row_mac = $2 where ${isRow}`, [
        serial,
        mac,
        ...values,
      ]);
      if (ids.length < NAMED_MAX) ids.push(values.join("/"));
      count++;
    }
    if (rows.length < BATCH) return { rows: count, ids };
  }
}
