import { readBlueprint, type Blueprint } from "#domain/blueprint.ts";
import type { JsonObject } from "#domain/json.ts";
import { readStrategy, type Strategy } from "#domain/strategy.ts";
import { must } from "#lib/assert.ts";
import type { Database } from "./pool.ts";

export interface StrategyVersion {
  readonly accountId: string;
  readonly version: number;
  readonly retired: boolean;
  readonly strategy: Strategy;
}

export interface BlueprintVersion {
  readonly id: string;
  readonly accountId: string;
  readonly version: number;
  readonly retired: boolean;
  readonly blueprint: Blueprint;
}

interface DocumentRow {
  id: string;
  accountId: string;
  version: number;
  retired: boolean;
  document: string;
}

// Versions never change, so what was parsed once stays right. Bounded, oldest out first.
const CACHE_SIZE_MAX = 2_000;
const parsed = new Map<string, unknown>();

function parseOnce<T>(cacheKey: string, document: string, read: (document: JsonObject) => T): T {
  const cached = parsed.get(cacheKey);
  // The text is part of the key's entry: two databases in one process (tests) must not share a version.
  if (cached !== undefined && (cached as { document: string }).document === document) {
    return (cached as { value: T }).value;
  }
  const value = read(JSON.parse(document) as JsonObject);
  if (parsed.size >= CACHE_SIZE_MAX) parsed.delete(parsed.keys().next().value ?? "");
  parsed.set(cacheKey, { document, value });
  return value;
}

function readStrategyRow(row: DocumentRow): StrategyVersion {
  const { accountId, version, retired } = row;
  const strategy = parseOnce(`${accountId}/${row.id}/${version}`, row.document, readStrategy);
  return { accountId, version, retired, strategy };
}

function readBlueprintRow(row: DocumentRow): BlueprintVersion {
  const { id, accountId, version, retired } = row;
  return {
    id,
    accountId,
    version,
    retired,
    blueprint: parseOnce(`${id}/${version}`, row.document, readBlueprint),
  };
}

const STRATEGY_COLUMNS = `strategy.id, strategy.account_id as "accountId", version.version, strategy.retired, version.document`;
const BLUEPRINT_COLUMNS = `blueprint.id, blueprint.account_id as "accountId", version.version, blueprint.retired, version.document`;

/** PostgreSQL's text holds no U+0000: a name with one, which a caller may send, is nobody's. */
const isStorable = (name: string): boolean => !name.includes("\u0000");

/** The version in force, retired or not. */
export async function findStrategy(
  db: Database,
  accountId: string,
  id: string,
): Promise<StrategyVersion | undefined> {
  if (!isStorable(id)) return undefined;
  const rows = await db.query<DocumentRow>({
    name: "find_strategy",
    text: `select ${STRATEGY_COLUMNS} from strategy join strategy_version version
        on version.account_id = strategy.account_id and version.strategy_id = strategy.id
        and version.version = strategy.current_version
      where strategy.account_id = $1 and strategy.id = $2`,
    values: [accountId, id],
  });
  return rows[0] && readStrategyRow(rows[0]);
}

export async function findStrategyVersion(
  db: Database,
  accountId: string,
  id: string,
  version: number,
): Promise<StrategyVersion | undefined> {
  const rows = await db.query<DocumentRow>(
    `select ${STRATEGY_COLUMNS} from strategy join strategy_version version
       on version.account_id = strategy.account_id and version.strategy_id = strategy.id
     where strategy.account_id = $1 and strategy.id = $2 and version.version = $3`,
    [accountId, id, version],
  );
  return rows[0] && readStrategyRow(rows[0]);
}

export async function listStrategies(db: Database): Promise<readonly StrategyVersion[]> {
  const rows = await db.query<DocumentRow>(
    `select ${STRATEGY_COLUMNS} from strategy join strategy_version version
       on version.account_id = strategy.account_id and version.strategy_id = strategy.id
       and version.version = strategy.current_version`,
  );
  return rows.map(readStrategyRow);
}

export async function findBlueprintByKey(
  db: Database,
  accountId: string,
  key: string,
): Promise<BlueprintVersion | undefined> {
  if (!isStorable(key)) return undefined;
  const rows = await db.query<DocumentRow>({
    name: "find_blueprint_by_key",
    text: `select ${BLUEPRINT_COLUMNS} from blueprint join blueprint_version version
        on version.blueprint_id = blueprint.id and version.version = blueprint.current_version
      where blueprint.account_id = $1 and blueprint.key = $2`,
    values: [accountId, key],
  });
  return rows[0] && readBlueprintRow(rows[0]);
}

export async function findBlueprintVersion(
  db: Database,
  blueprintId: string,
  version: number,
): Promise<BlueprintVersion | undefined> {
  const rows = await db.query<DocumentRow>(
    `select ${BLUEPRINT_COLUMNS} from blueprint join blueprint_version version on version.blueprint_id = blueprint.id
     where blueprint.id = $1 and version.version = $2`,
    [blueprintId, version],
  );
  return rows[0] && readBlueprintRow(rows[0]);
}

/** What is applied now, by account, kind and id: the base of a plan. */
export interface AppliedDocument {
  readonly kind: "account" | "strategy" | "blueprint";
  readonly account: string;
  readonly id: string;
  readonly document: string;
}

export async function listAppliedDocuments(db: Database): Promise<readonly AppliedDocument[]> {
  return await db.query<AppliedDocument>(
    `select 'account' as kind, slug as account, slug as id, document from account
     union all
     select 'strategy', account.slug, strategy.id, version.document
       from strategy join account on account.id = strategy.account_id
       join strategy_version version on version.account_id = strategy.account_id
         and version.strategy_id = strategy.id and version.version = strategy.current_version
     union all
     select 'blueprint', account.slug, blueprint.key, version.document
       from blueprint join account on account.id = blueprint.account_id
       join blueprint_version version on version.blueprint_id = blueprint.id
         and version.version = blueprint.current_version`,
  );
}

/** A new immutable version becomes the one in force; gives its number. Runs and sessions keep theirs. */
export async function saveStrategyVersion(
  db: Database,
  strategy: {
    readonly accountId: string;
    readonly id: string;
    readonly document: string;
    readonly retired: boolean;
  },
): Promise<number> {
  const rows = await db.query<{ version: number }>(
    `insert into strategy (account_id, id, current_version, retired) values ($1, $2, 1, $3)
     on conflict (account_id, id) do update set current_version = strategy.current_version + 1, retired = excluded.retired
     returning current_version as version`,
    [strategy.accountId, strategy.id, strategy.retired],
  );
  const { version } = must(rows[0], "the strategy's row");
  await db.query(
    `insert into strategy_version (account_id, strategy_id, version, document) values ($1, $2, $3, $4)`,
    [strategy.accountId, strategy.id, version, strategy.document],
  );
  return version;
}

export async function saveBlueprintVersion(
  db: Database,
  blueprint: {
    readonly newId: string;
    readonly accountId: string;
    readonly key: string;
    readonly document: string;
    readonly retired: boolean;
  },
): Promise<number> {
  const rows = await db.query<{ id: string; version: number }>(
    `insert into blueprint (id, account_id, key, current_version, retired) values ($1, $2, $3, 1, $4)
     on conflict (account_id, key) do update set current_version = blueprint.current_version + 1, retired = excluded.retired
     returning id, current_version as version`,
    [blueprint.newId, blueprint.accountId, blueprint.key, blueprint.retired],
  );
  const { id, version } = must(rows[0], "the Blueprint's row");
  await db.query(
    `insert into blueprint_version (account_id, blueprint_id, version, document) values ($1, $2, $3, $4)`,
    [blueprint.accountId, id, version, blueprint.document],
  );
  return version;
}
