import { readBlueprint, type Blueprint } from "#domain/blueprint.ts";
import type { JsonObject } from "#domain/json.ts";
import { readStrategy, type Strategy } from "#domain/strategy.ts";
import { must } from "#lib/assert.ts";
import { grouped, inOrder } from "./connection/group.ts";
import type { Database } from "./connection/pool.ts";
import { readGenuine, readOneGenuine, type Signed } from "./signing/signed-rows.ts";
import { signedColumns, type SignedRow } from "./signing/signed-tables.ts";

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

/** A document in force: which version it is, and what that version says. Two signed rows. */
interface DocumentRow extends SignedRow {
  readonly id: string;
  readonly accountId: string;
  readonly version: number;
  readonly retired: boolean;
  readonly document: string;
  readonly versionSerial: number | null;
  readonly versionMac: Buffer | null;
}

const signedParts =
  (kind: "strategy" | "blueprint") =>
  (row: DocumentRow): readonly Signed[] => [
    { kind, row },
    { kind: `${kind}_version`, row: { ...row, rowSerial: row.versionSerial, rowMac: row.versionMac } },
  ];

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

/** What is in force; `found` and `version` are the two rows. */
const selectInForce = (kind: "strategy" | "blueprint"): string =>
  `select ${signedColumns(kind, "found")}, version.document, version.row_serial as "versionSerial", version.row_mac as "versionMac"
   from ${kind} found join ${kind}_version version on version.account_id = found.account_id
     and version.${kind}_id = found.id and version.version = found.current_version`;

/** PostgreSQL's text holds no U+0000: a name with one, which a caller may send, is nobody's. */
const isStorable = (name: string): boolean => !name.includes("\u0000");

/** The version in force, retired or not. Throws RowRefused. */
export async function findStrategy(
  db: Database,
  accountId: string,
  id: string,
): Promise<StrategyVersion | undefined> {
  if (!isStorable(id)) return undefined;
  const row = await readOneGenuine(
    db,
    async () =>
      await db.query<DocumentRow>({
        name: "find_strategy",
        text: `${selectInForce("strategy")} where found.account_id = $1 and found.id = $2`,
        values: [accountId, id],
      }),
    signedParts("strategy"),
  );
  return row && readStrategyRow(row);
}

/** Of any version, in force or not. Throws RowRefused. */
export async function findStrategyVersion(
  db: Database,
  accountId: string,
  id: string,
  version: number,
): Promise<Strategy | undefined> {
  const row = await readOneGenuine(
    db,
    async () =>
      await db.query<VersionRow>(
        `select ${signedColumns("strategy_version")} from strategy_version
         where account_id = $1 and strategy_id = $2 and version = $3`,
        [accountId, id, version],
      ),
    (each) => [{ kind: "strategy_version", row: each }],
  );
  return row && parseOnce(`${accountId}/${id}/${version}`, row.document, readStrategy);
}

/** All that are in force and genuine. */
export async function listStrategies(db: Database): Promise<readonly StrategyVersion[]> {
  const { genuine } = await readGenuine(
    db,
    async () => await db.query<DocumentRow>(selectInForce("strategy")),
    signedParts("strategy"),
  );
  return genuine.map(readStrategyRow);
}

interface VersionRow extends SignedRow {
  readonly accountId: string;
  readonly id: string;
  readonly version: number;
  readonly document: string;
}

/** Every version, in force or not, whose client's secret is a variable of the environment: strategies from before account secrets. */
export async function listVariableStrategies(
  db: Database,
): Promise<readonly Pick<StrategyVersion, "accountId" | "strategy">[]> {
  const { genuine } = await readGenuine(
    db,
    async () =>
      await db.query<VersionRow>(
        `select ${signedColumns("strategy_version")} from strategy_version where document like '%"client_secret_env"%'`,
      ),
    (row) => [{ kind: "strategy_version", row }],
  );
  return genuine.map(({ accountId, id, version, document }) => ({
    accountId,
    strategy: parseOnce(`${accountId}/${id}/${version}`, document, readStrategy),
  }));
}

/** What may change about a document: which version is in force, and whether it is retired. */
interface InForce extends SignedRow {
  readonly id: string;
  readonly version: number;
  readonly retired: boolean;
}

interface DocumentCall {
  readonly accountId: string;
  /** The Blueprint's key, or the strategy's id. */
  readonly name: string;
}

const readInForce = (table: "blueprint" | "strategy", nameColumn: "key" | "id") =>
  grouped<DocumentCall, InForce | undefined>(async (db, calls) => {
    const nameOf = ({ accountId, name }: DocumentCall): string => `${accountId}/${name}`;
    // Most concurrent requests are about few documents.
    const asked = [...new Map(calls.map((call) => [nameOf(call), call])).values()];
    const rows = await db.query<InForce & { at: number }>({
      name: `look_up_${table}`,
      text: `select given.at::int, ${signedColumns(table, "found")}
        from unnest($1::text[], $2::text[]) with ordinality as given(account_id, name, at)
          join ${table} found on found.account_id = given.account_id and found.${nameColumn} = given.name`,
      values: [asked.map((call) => call.accountId), asked.map((call) => call.name)],
    });
    const found = inOrder(rows, asked);
    const byName = new Map(asked.map((call, index) => [nameOf(call), found[index]]));
    return calls.map((call) => byName.get(nameOf(call)));
  });

/** As `readInForce`, verified. Throws RowRefused. */
function lookUpInForce(kind: "blueprint" | "strategy", nameColumn: "key" | "id") {
  const read = readInForce(kind, nameColumn);
  return async (db: Database, call: DocumentCall): Promise<InForce | undefined> =>
    await readOneGenuine(
      db,
      async () => {
        const found = await read(db, call);
        return found ? [found] : [];
      },
      (row) => [{ kind, row }],
    );
}

const lookUpBlueprint = lookUpInForce("blueprint", "key");
const lookUpStrategyInForce = lookUpInForce("strategy", "id");

/** Documents of versions, which never change, as they were read from this database. */
const kept = new WeakMap<Database, Map<string, Strategy | Blueprint>>();

async function findCached<T extends Strategy | Blueprint>(
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

/** The document of a version, read and verified only once. Not in a transaction. Throws RowRefused. */
export async function findCachedBlueprintVersion(
  db: Database,
  id: string,
  version: number,
): Promise<Blueprint | undefined> {
  return await findCached(
    db,
    `blueprint/${id}/${version}`,
    async () => await findBlueprintVersion(db, id, version),
  );
}

/** As findCachedBlueprintVersion. */
export async function findCachedStrategyVersion(
  db: Database,
  accountId: string,
  id: string,
  version: number,
): Promise<Strategy | undefined> {
  return await findCached(
    db,
    `strategy/${accountId}/${id}/${version}`,
    async () => await findStrategyVersion(db, accountId, id, version),
  );
}

/** The version in force, retired or not. Which one that is, is read each time; its document only once. Throws RowRefused. */
export async function findBlueprintByKey(
  db: Database,
  accountId: string,
  key: string,
): Promise<BlueprintVersion | undefined> {
  if (!isStorable(key)) return undefined;
  const inForce = await lookUpBlueprint(db, { accountId, name: key });
  if (!inForce) return undefined;
  const { id, version, retired } = inForce;
  const blueprint = await findCachedBlueprintVersion(db, id, version);
  return blueprint && { id, accountId, version, retired, blueprint };
}

/** As findStrategy, for many at once: one statement, and the document read only once. Not in a transaction. Throws RowRefused. */
export async function lookUpStrategy(
  db: Database,
  accountId: string,
  id: string,
): Promise<StrategyVersion | undefined> {
  const inForce = await lookUpStrategyInForce(db, { accountId, name: id });
  if (!inForce) return undefined;
  const { version, retired } = inForce;
  const strategy = await findCachedStrategyVersion(db, accountId, id, version);
  return strategy && { accountId, version, retired, strategy };
}

async function findBlueprintVersion(
  db: Database,
  blueprintId: string,
  version: number,
): Promise<Blueprint | undefined> {
  const row = await readOneGenuine(
    db,
    async () =>
      await db.query<VersionRow>(
        `select ${signedColumns("blueprint_version")} from blueprint_version where blueprint_id = $1 and version = $2`,
        [blueprintId, version],
      ),
    (each) => [{ kind: "blueprint_version", row: each }],
  );
  return row && parseOnce(`${blueprintId}/${version}`, row.document, readBlueprint);
}

/** What is applied now, by account, kind and id: the base of a plan. */
export interface AppliedDocument {
  readonly kind: "account" | "strategy" | "blueprint";
  readonly account: string;
  readonly id: string;
  readonly document: string;
}

/** Documents that this installation has not signed are left out: to apply them again puts them in force. */
export async function listAppliedDocuments(db: Database): Promise<readonly AppliedDocument[]> {
  return (await readAppliedDocuments(db)).documents;
}

/** `refused`: the names of those that are in force and that this installation has not signed. */
export async function readAppliedDocuments(db: Database): Promise<{
  readonly documents: readonly AppliedDocument[];
  readonly refused: readonly Omit<AppliedDocument, "document">[];
}> {
  const accounts = await db.query<{ accountId: string; account: string; document: string }>(
    `select id as "accountId", slug as account, document from account`,
  );
  const slugs = new Map(accounts.map(({ accountId, account }) => [accountId, account]));
  const documents: AppliedDocument[] = accounts.map(({ account, document }) => ({
    kind: "account",
    account,
    id: account,
    document,
  }));
  const refused: Omit<AppliedDocument, "document">[] = [];
  for (const kind of ["strategy", "blueprint"] as const) {
    const { genuine, refusedRows } = await readGenuine(
      db,
      async () => await db.query<DocumentRow & { key?: string }>(selectInForce(kind)),
      signedParts(kind),
    );
    for (const { accountId, id, key, document } of genuine)
      documents.push({ kind, account: must(slugs.get(accountId), "an account"), id: key ?? id, document });
    for (const { accountId, id, key } of refusedRows)
      refused.push({ kind, account: slugs.get(accountId) ?? "", id: key ?? id });
  }
  return { documents, refused };
}

/**
 * The Blueprints in force with these keys, retired or not; null: all of the account. In the order of their keys. Those that this
 * installation has not signed are left out.
 */
export async function listBlueprints(
  db: Database,
  accountId: string,
  keys: readonly string[] | null,
): Promise<readonly BlueprintVersion[]> {
  const { genuine } = await readGenuine(
    db,
    async () =>
      await db.query<DocumentRow>(
        `${selectInForce("blueprint")}
         where found.account_id = $1 and ($2::text[] is null or found.key = any ($2)) order by found.key`,
        [accountId, keys?.filter(isStorable) ?? null],
      ),
    signedParts("blueprint"),
  );
  return genuine.map(readBlueprintRow);
}
