import { readBlueprint, type Blueprint } from "#domain/blueprint.ts";
import type { JsonObject } from "#domain/json.ts";
import { readStrategy, type Strategy } from "#domain/strategy.ts";
import { must } from "#lib/assert.ts";
import { grouped, inOrder } from "./group.ts";
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

/** Every version, in force or not, whose client's secret is a variable of the environment: strategies from before account secrets. */
export async function listVariableStrategies(db: Database): Promise<readonly StrategyVersion[]> {
  const rows = await db.query<DocumentRow>(
    `select ${STRATEGY_COLUMNS} from strategy join strategy_version version
       on version.account_id = strategy.account_id and version.strategy_id = strategy.id
     where version.document like '%"client_secret_env"%'`,
  );
  return rows.map(readStrategyRow);
}

/** What may change about a document: which version is in force, and whether it is retired. */
interface InForce {
  readonly id: string;
  readonly version: number;
  readonly retired: boolean;
}

interface DocumentCall {
  readonly accountId: string;
  /** The Blueprint's key, or the strategy's id. */
  readonly name: string;
}

const lookUpInForce = (table: "blueprint" | "strategy", nameColumn: "key" | "id") =>
  grouped<DocumentCall, InForce | undefined>(async (db, calls) => {
    const nameOf = ({ accountId, name }: DocumentCall): string => `${accountId}/${name}`;
    // Most concurrent requests are about few documents.
    const asked = [...new Map(calls.map((call) => [nameOf(call), call])).values()];
    const rows = await db.query<InForce & { at: number }>({
      name: `look_up_${table}`,
      text: `select given.at::int, found.id, found.current_version as version, found.retired
        from unnest($1::text[], $2::text[]) with ordinality as given(account_id, name, at)
          join ${table} found on found.account_id = given.account_id and found.${nameColumn} = given.name`,
      values: [asked.map((call) => call.accountId), asked.map((call) => call.name)],
    });
    const found = inOrder(rows, asked);
    const byName = new Map(asked.map((call, index) => [nameOf(call), found[index]]));
    return calls.map((call) => byName.get(nameOf(call)));
  });

const lookUpBlueprint = lookUpInForce("blueprint", "key");
const lookUpStrategyInForce = lookUpInForce("strategy", "id");

/** Documents of versions, which never change, as they were read from this database. */
const kept = new WeakMap<Database, Map<string, Strategy | Blueprint>>();

async function keepVersion<T extends Strategy | Blueprint>(
  db: Database,
  name: string,
  read: () => Promise<T | undefined>,
): Promise<T | undefined> {
  const versions = kept.get(db) ?? new Map<string, Strategy | Blueprint>();
  kept.set(db, versions);
  const known = versions.get(name);
  if (known) return known as T;
  const found = await read();
  if (!found) return undefined;
  if (versions.size >= CACHE_SIZE_MAX) versions.delete(versions.keys().next().value ?? "");
  versions.set(name, found);
  return found;
}

/** The document of a version, read only once. Not in a transaction. */
export async function keepBlueprintVersion(
  db: Database,
  id: string,
  version: number,
): Promise<Blueprint | undefined> {
  return await keepVersion(
    db,
    `blueprint/${id}/${version}`,
    async () => (await findBlueprintVersion(db, id, version))?.blueprint,
  );
}

/** As keepBlueprintVersion. */
export async function keepStrategyVersion(
  db: Database,
  accountId: string,
  id: string,
  version: number,
): Promise<Strategy | undefined> {
  return await keepVersion(
    db,
    `strategy/${accountId}/${id}/${version}`,
    async () => (await findStrategyVersion(db, accountId, id, version))?.strategy,
  );
}

/** The version in force, retired or not. Which one that is, is read each time; its document only once. */
export async function findBlueprintByKey(
  db: Database,
  accountId: string,
  key: string,
): Promise<BlueprintVersion | undefined> {
  if (!isStorable(key)) return undefined;
  const inForce = await lookUpBlueprint(db, { accountId, name: key });
  if (!inForce) return undefined;
  const { id, version, retired } = inForce;
  const blueprint = await keepBlueprintVersion(db, id, version);
  return blueprint && { id, accountId, version, retired, blueprint };
}

/** As findStrategy, for many at once: one statement, and the document read only once. Not in a transaction. */
export async function lookUpStrategy(
  db: Database,
  accountId: string,
  id: string,
): Promise<StrategyVersion | undefined> {
  const inForce = await lookUpStrategyInForce(db, { accountId, name: id });
  if (!inForce) return undefined;
  const { version, retired } = inForce;
  const strategy = await keepStrategyVersion(db, accountId, id, version);
  return strategy && { accountId, version, retired, strategy };
}

async function findBlueprintVersion(
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
    readonly operatorId: string | null;
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
    `insert into strategy_version (account_id, strategy_id, version, document, operator_id) values ($1, $2, $3, $4, $5)`,
    [strategy.accountId, strategy.id, version, strategy.document, strategy.operatorId],
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
    readonly operatorId: string | null;
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
    `insert into blueprint_version (account_id, blueprint_id, version, document, operator_id) values ($1, $2, $3, $4, $5)`,
    [blueprint.accountId, id, version, blueprint.document, blueprint.operatorId],
  );
  return version;
}

/** The Blueprints in force with these keys, retired or not; null: all of the account. In the order of their keys. */
export async function listBlueprints(
  db: Database,
  accountId: string,
  keys: readonly string[] | null,
): Promise<readonly BlueprintVersion[]> {
  const rows = await db.query<DocumentRow>(
    `select ${BLUEPRINT_COLUMNS} from blueprint join blueprint_version version
       on version.blueprint_id = blueprint.id and version.version = blueprint.current_version
     where blueprint.account_id = $1 and ($2::text[] is null or blueprint.key = any ($2)) order by blueprint.key`,
    [accountId, keys?.filter(isStorable) ?? null],
  );
  return rows.map(readBlueprintRow);
}
