import type { NamedPage } from "#domain/page-cursor.ts";
import type { RunStatus } from "#domain/run.ts";
import type { DocumentKind } from "#db/config-documents.ts";
import type { Database } from "#db/connection/pool.ts";
import { readOneGenuine } from "#db/signing/signed-rows.ts";
import type { SignedRow } from "#db/signing/signed-tables.ts";

export interface SeenDocument {
  readonly accountId: string;
  readonly account: string;
  /** The Blueprint's key, or the strategy's id. */
  readonly name: string;
  readonly version: number;
  readonly retired: boolean;
  /** The details of the version in force. */
  readonly document: string;
  readonly appliedAt: Date;
  /** By their sign-in name; null: the command line. */
  readonly appliedBy: string | null;
  /** A Blueprint's last run; null: none yet, or a strategy. */
  readonly lastRunId: string | null;
  readonly lastRunStatus: RunStatus | null;
  readonly lastRunStep: string | null;
  readonly lastRunAt: Date | null;
  /** Of a Blueprint's newest `RECENT` runs. */
  readonly recentCompleted: number;
  readonly recentFailed: number;
}

/** So few that a page of Blueprints reads them from the index, however many runs there are. */
const RECENT = 20;

const SEEN = `account.id as "accountId", account.slug as account, found.retired, version.version, version.document,
  version.created_at as "appliedAt", operator.email as "appliedBy", found.id, version.row_serial as "rowSerial",
  version.row_mac as "rowMac", found.row_serial as "pointerSerial", found.row_mac as "pointerMac"`;

/** Constant SQL: each kind has its own tables, and a Blueprint also has its last run. */
const KINDS = {
  blueprint: {
    columns: `found.key as name, last.id as "lastRunId", last.status as "lastRunStatus",
      last.progress_step as "lastRunStep", last.created_at as "lastRunAt", recent.completed as "recentCompleted",
      recent.failed as "recentFailed"`,
    tables: `blueprint found join account on account.id = found.account_id
      join blueprint_version version on version.blueprint_id = found.id
      left join lateral (select id, status, progress_step, created_at from run where blueprint_id = found.id
        order by created_at desc, id desc limit 1) last on true
      cross join lateral (select (count(*) filter (where status = 'completed'))::int as completed,
          (count(*) filter (where status = 'failed'))::int as failed
        from (select status from run where blueprint_id = found.id
          order by created_at desc, id desc limit ${RECENT}) newest) recent`,
    name: "found.key",
    current: "found.current_version",
  },
  strategy: {
    columns: `found.id as name, null as "lastRunId", null as "lastRunStatus", null as "lastRunStep",
      null::timestamptz as "lastRunAt", 0 as "recentCompleted", 0 as "recentFailed"`,
    tables: `strategy found join account on account.id = found.account_id
      join strategy_version version on version.account_id = found.account_id and version.strategy_id = found.id`,
    name: "found.id",
    current: "found.current_version",
  },
} as const;

interface SignedDocument extends SeenDocument, SignedRow {
  readonly id: string;
  readonly pointerSerial: number | null;
  readonly pointerMac: Buffer | null;
}

/** The row that refers to the version in force. */
const pointerOf = (row: SignedDocument): SignedRow & { readonly key: string } => ({
  ...row,
  key: row.name,
  rowSerial: row.pointerSerial,
  rowMac: row.pointerMac,
});

const from = (kind: DocumentKind): string =>
  `select ${SEEN}, ${KINDS[kind].columns} from ${KINDS[kind].tables}
   left join operator on operator.id = version.operator_id`;

/** Versions in force, by account and name. */
export async function listSeenDocuments(
  db: Database,
  kind: DocumentKind,
  filter: { readonly accountIds: readonly string[] | null; readonly retired: boolean | null },
  { after, rows }: NamedPage,
): Promise<readonly SeenDocument[]> {
  const { name, current } = KINDS[kind];
  return await db.query<SeenDocument>(
    `${from(kind)} where version.version = ${current} and ($1::text[] is null or found.account_id = any($1))
       and ($2::boolean is null or found.retired = $2)
       and ($3::text is null or (account.slug, ${name}) > ($3, $4))
     order by account.slug, ${name} limit $5`,
    [filter.accountIds, filter.retired, after?.[0] ?? null, after?.[1] ?? null, rows],
  );
}

/** A version, or with null the current one. It may be applied again, so this throws RowRefused. */
export async function findSeenDocument(
  db: Database,
  kind: DocumentKind,
  which: { readonly accountId: string; readonly name: string; readonly version: number | null },
): Promise<SeenDocument | undefined> {
  const { name, current } = KINDS[kind];
  return await readOneGenuine(
    db,
    async () =>
      await db.query<SignedDocument>(
        `${from(kind)} where found.account_id = $1 and ${name} = $2 and version.version = coalesce($3::int, ${current})`,
        [which.accountId, which.name, which.version],
      ),
    (row) => [
      { kind: `${kind}_version`, row },
      ...(which.version === null ? [{ kind, row: pointerOf(row) }] : []),
    ],
  );
}

/** A document's versions, the last one first. */
export async function listSeenVersions(
  db: Database,
  kind: DocumentKind,
  which: { readonly accountId: string; readonly name: string },
  { after, rows }: NamedPage,
): Promise<readonly SeenDocument[]> {
  return await db.query<SeenDocument>(
    `${from(kind)} where found.account_id = $1 and ${KINDS[kind].name} = $2
       and ($3::int is null or version.version < $3)
     order by version.version desc limit $4`,
    [which.accountId, which.name, after?.[0] ?? null, rows],
  );
}

/** The Blueprints with a key, of some accounts or of all. */
export async function listBlueprintIds(
  db: Database,
  accountIds: readonly string[] | null,
  key: string,
): Promise<readonly string[]> {
  const rows = await db.query<{ id: string }>(
    `select id from blueprint where key = $2 and ($1::text[] is null or account_id = any($1))`,
    [accountIds, key],
  );
  return rows.map((row) => row.id);
}

/** A current version that an operator published in the dashboard. */
export interface DashboardVersion {
  readonly kind: DocumentKind;
  readonly account: string;
  /** A strategy's id, or a Blueprint's key. */
  readonly name: string;
  readonly version: number;
  /** The operator's email. */
  readonly by: string;
  readonly document: string;
  /** The last document from the command line; null: none. */
  readonly base: string | null;
}

const ofDashboard = (kind: DocumentKind): string =>
  `select '${kind}' as kind, account.slug as account, ${KINDS[kind].name} as name, version.version, operator.email as by,
     version.document, (select document from ${kind}_version base where base.account_id = found.account_id
       and base.${kind}_id = found.id and base.operator_id is null order by base.version desc limit 1) as base
   from ${kind} found join account on account.id = found.account_id
     join ${kind}_version version on version.account_id = found.account_id and version.${kind}_id = found.id
       and version.version = found.current_version
     join operator on operator.id = version.operator_id`;

/** By account and name. */
export async function listDashboardVersions(db: Database): Promise<readonly DashboardVersion[]> {
  return await db.query<DashboardVersion>(
    `${ofDashboard("strategy")} union all ${ofDashboard("blueprint")} order by account, kind, name`,
  );
}
