import type { AccountSettings } from "#domain/account.ts";
import type { Branding, Logo } from "#domain/branding.ts";
import { readHostThrottles, type HostThrottle } from "#domain/host-throttle.ts";
import type { Json } from "#domain/json.ts";
import type { Database } from "./connection/pool.ts";

export interface Account extends AccountSettings {
  readonly id: string;
  /** Whether it is the test account of another one. */
  readonly isTest: boolean;
}

const ACCOUNT_COLUMNS = `id, slug, name, allowed_origins as "allowedOrigins",
  coalesce(embed_origins, allowed_origins) as "embedOrigins", session_lifetime_ms as "sessionLifetimeMs",
  retention_ms as "retentionMs", concurrency, test_of is not null as "isTest",
  case when rate_per_second is null then null
    else json_build_object('perSecond', rate_per_second, 'burst', rate_burst) end as "rateLimit"`;

export async function findAccountBySlug(db: Database, slug: string): Promise<Account | undefined> {
  // PostgreSQL's text can't contain U+0000, so no account has such a name.
  if (slug.includes("\u0000")) return undefined;
  const rows = await db.query<Account>(`select ${ACCOUNT_COLUMNS} from account where slug = $1`, [slug]);
  return rows[0];
}

export async function listAccountIds(db: Database): Promise<readonly string[]> {
  return (await db.query<{ id: string }>("select id from account")).map(({ id }) => id);
}

/** The account's document, as applied. */
export async function findAccountDocument(db: Database, id: string): Promise<string | undefined> {
  const rows = await db.query<{ document: string }>(`select document from account where id = $1`, [id]);
  return rows[0]?.document;
}

/** Its document's throttles of hosts. */
export async function findHostThrottles(db: Database, id: string): Promise<readonly HostThrottle[]> {
  const rows = await db.query<{ throttle: Json | null }>({
    name: "find_host_throttles",
    text: `select document::json -> 'throttle' as throttle from account where id = $1`,
    values: [id],
  });
  return readHostThrottles(rows[0]?.throttle ?? undefined);
}

/** An account in the form that hosted pages show. */
export interface BrandedAccount extends Account {
  /** null: only the name is shown. */
  readonly branding: Branding | null;
}

export async function findAccountById(db: Database, id: string): Promise<BrandedAccount | undefined> {
  const rows = await db.query<BrandedAccount>(
    `select ${ACCOUNT_COLUMNS}, branding from account where id = $1`,
    [id],
  );
  return rows[0];
}

/** All but test accounts. */
export async function listAccounts(
  db: Database,
): Promise<readonly (Account & { readonly document: string })[]> {
  return await db.query<Account & { document: string }>(
    `select ${ACCOUNT_COLUMNS}, document from account where test_of is null order by slug`,
  );
}

/** The test account of an account, if it has one. */
export async function findTestAccount(db: Database, id: string): Promise<Account | undefined> {
  const rows = await db.query<Account>(`select ${ACCOUNT_COLUMNS} from account where test_of = $1`, [id]);
  return rows[0];
}

/** The ids of the test accounts of these accounts; null: of all. */
export async function listTestAccountIds(
  db: Database,
  of: readonly string[] | null,
): Promise<readonly string[]> {
  const rows = await db.query<{ id: string }>({
    name: "list_test_accounts",
    text: `select id from account where test_of is not null and ($1::text[] is null or test_of = any ($1)) order by id`,
    values: [of],
  });
  return rows.map(({ id }) => id);
}

/** The ids of all accounts but test accounts; null: there are no test accounts, so these are all. */
export async function listLiveAccountIds(db: Database): Promise<readonly string[] | null> {
  const rows = await db.query<{ id: string }>({
    name: "list_live_accounts",
    text: `select id from account where test_of is null and exists (select 1 from account where test_of is not null)
       order by id`,
  });
  return rows.length === 0 ? null : rows.map(({ id }) => id);
}

/** Creates the account or replaces its document. Returns its id. */
export async function saveAccount(
  db: Database,
  account: AccountSettings & {
    readonly id: string;
    readonly document: string;
    readonly branding: Branding | null;
    readonly logo: Logo | null;
    /** The account whose test account it is; null: none. */
    readonly testOf: string | null;
  },
): Promise<string> {
  const rows = await db.query<{ id: string }>(
    `insert into account (id, slug, document, name, allowed_origins, session_lifetime_ms, retention_ms, concurrency,
       rate_per_second, rate_burst, branding, embed_origins, test_of)
     values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11::jsonb, $12, $13)
     on conflict (slug) do update set document = excluded.document, name = excluded.name,
       allowed_origins = excluded.allowed_origins, session_lifetime_ms = excluded.session_lifetime_ms,
       retention_ms = excluded.retention_ms, concurrency = excluded.concurrency,
       rate_per_second = excluded.rate_per_second, rate_burst = excluded.rate_burst,
       branding = excluded.branding, embed_origins = excluded.embed_origins, updated_at = app_now()
     returning id`,
    [
      account.id,
      account.slug,
      account.document,
      account.name,
      account.allowedOrigins,
      account.sessionLifetimeMs,
      account.retentionMs,
      account.concurrency,
      account.rateLimit?.perSecond ?? null,
      account.rateLimit?.burst ?? null,
      account.branding && JSON.stringify(account.branding),
      account.embedOrigins,
      account.testOf,
    ],
  );
  const id = rows[0]?.id ?? account.id;
  await saveLogo(db, id, account.logo);
  return id;
}

async function saveLogo(db: Database, accountId: string, logo: Logo | null): Promise<void> {
  if (logo === null) {
    await db.query(`delete from account_logo where account_id = $1`, [accountId]);
    return;
  }
  await db.query(
    `insert into account_logo (account_id, sha256, media_type, content) values ($1, $2, $3, $4)
     on conflict (account_id) do update set sha256 = excluded.sha256, media_type = excluded.media_type,
       content = excluded.content`,
    [accountId, logo.sha256, logo.mediaType, logo.content],
  );
}

/** The logo with this content hash, of any account. */
export async function findLogo(db: Database, sha256: Buffer): Promise<Logo | undefined> {
  const rows = await db.query<Logo>(
    `select sha256, media_type as "mediaType", content from account_logo where sha256 = $1 limit 1`,
    [sha256],
  );
  return rows[0];
}
