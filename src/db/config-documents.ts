import { readBlueprint, type Blueprint } from "#domain/blueprint.ts";
import type { JsonObject } from "#domain/json.ts";
import { readStrategy, type Strategy } from "#domain/strategy.ts";
import { grouped, inOrder } from "./connection/group.ts";
import type { Database } from "./connection/pool.ts";
import { readGenuine, readOneGenuine, type Signed } from "./signing/signed-rows.ts";
import { signedColumns, type SignedRow } from "./signing/signed-tables.ts";

/** The kinds of documents that have versions. */
interface Documents {
  readonly strategy: Strategy;
  readonly blueprint: Blueprint;
}

export type DocumentKind = keyof Documents;

/** The column by which callers identify a document, and how its text is parsed. */
export const DOCUMENT_KINDS: {
  readonly [Kind in DocumentKind]: {
    readonly name: "id" | "key";
    readonly read: (document: JsonObject) => Documents[Kind];
  };
} = {
  strategy: { name: "id", read: readStrategy },
  blueprint: { name: "key", read: readBlueprint },
};

/** A version of a document, by its table's id. */
interface Version {
  readonly id: string;
  readonly accountId: string;
  readonly version: number;
}

/** A version, with its parsed content under the name of its kind. `retired`: whether the document is retired. */
type VersionOf<Kind extends DocumentKind> = Version & { readonly retired: boolean } & Pick<Documents, Kind>;

export type StrategyVersion = VersionOf<"strategy">;
export type BlueprintVersion = VersionOf<"blueprint">;

interface VersionRow extends SignedRow, Version {
  readonly document: string;
}

/** The current version of a document: its number and its content. Two signed rows. */
interface DocumentRow extends VersionRow {
  readonly retired: boolean;
  readonly versionSerial: number | null;
  readonly versionMac: Buffer | null;
}

const signedParts =
  (kind: DocumentKind) =>
  (row: DocumentRow): readonly Signed[] => [
    { kind, row },
    { kind: `${kind}_version`, row: { ...row, rowSerial: row.versionSerial, rowMac: row.versionMac } },
  ];

// Versions never change, so parsed documents stay valid. Bounded; the oldest are evicted first.
const CACHE_SIZE_MAX = 2_000;
const parsed = new Map<string, { readonly document: string; readonly value: unknown }>();

const nameOf = (kind: DocumentKind, { accountId, id, version }: Version): string =>
  `${kind}/${accountId}/${id}/${version}`;

function keep<Value>(cache: Map<string, Value>, name: string, value: Value): void {
  if (cache.size >= CACHE_SIZE_MAX) cache.delete(cache.keys().next().value ?? "");
  cache.set(name, value);
}

function parseOnce<Kind extends DocumentKind>(kind: Kind, row: VersionRow): Documents[Kind] {
  const { document } = row;
  const name = nameOf(kind, row);
  const cached = parsed.get(name);
  // The text is part of the key's entry: two databases in one process (tests) must not share a version.
  if (cached?.document === document) return cached.value as Documents[Kind];
  const value = DOCUMENT_KINDS[kind].read(JSON.parse(document) as JsonObject);
  keep(parsed, name, { document, value });
  return value;
}

const withDocument = <Kind extends DocumentKind>(
  kind: Kind,
  { id, accountId, version, retired }: Version & { readonly retired: boolean },
  document: Documents[Kind],
): VersionOf<Kind> => ({ id, accountId, version, retired, [kind]: document }) as unknown as VersionOf<Kind>;

/** The current document; `found` and `version` are the two rows. */
const selectInForce = (kind: DocumentKind): string =>
  `select ${signedColumns(kind, "found")}, version.document, version.row_serial as "versionSerial", version.row_mac as "versionMac"
   from ${kind} found join ${kind}_version version on version.account_id = found.account_id
     and version.${kind}_id = found.id and version.version = found.current_version`;

/** PostgreSQL's text can't contain U+0000, so no document has such a name. */
const isStorable = (name: string): boolean => !name.includes("\u0000");

/** The current version, retired or not. Throws RowRefused. */
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
  return row && withDocument("strategy", row, parseOnce("strategy", row));
}

/** Any version, current or not. Throws RowRefused. */
export async function findVersion<Kind extends DocumentKind>(
  db: Database,
  kind: Kind,
  { accountId, id, version }: Version,
): Promise<Documents[Kind] | undefined> {
  const row = await readOneGenuine(
    db,
    async () =>
      await db.query<VersionRow>(
        `select ${signedColumns(`${kind}_version`)} from ${kind}_version
         where account_id = $1 and ${kind}_id = $2 and version = $3`,
        [accountId, id, version],
      ),
    (each) => [{ kind: `${kind}_version`, row: each }],
  );
  return row && parseOnce(kind, row);
}

/** Documents of versions, which never change, as they were read from this database. */
const kept = new WeakMap<Database, Map<string, Documents[DocumentKind]>>();

/** Like findVersion, but each version is read and verified only once. Must not be used in a transaction. Throws RowRefused. */
export async function findCachedVersion<Kind extends DocumentKind>(
  db: Database,
  kind: Kind,
  version: Version,
): Promise<Documents[Kind] | undefined> {
  const versions = kept.get(db) ?? new Map<string, Documents[DocumentKind]>();
  kept.set(db, versions);
  const name = nameOf(kind, version);
  const known = versions.get(name);
  if (known) return known as Documents[Kind];
  const found = await findVersion(db, kind, version);
  if (found) keep(versions, name, found);
  return found;
}

/** All current and genuine ones but those of test accounts, which are derived from them. */
export async function listStrategies(db: Database): Promise<readonly StrategyVersion[]> {
  return await listInForce(
    db,
    "strategy",
    "where found.account_id in (select id from account where test_of is null)",
  );
}

/**
 * The current Blueprints with these keys, retired or not; null: all of the account. Sorted by key. Those that this installation
 * has not signed are omitted.
 */
export async function listBlueprints(
  db: Database,
  accountId: string,
  keys: readonly string[] | null,
): Promise<readonly BlueprintVersion[]> {
  return await listInForce(
    db,
    "blueprint",
    "where found.account_id = $1 and ($2::text[] is null or found.key = any ($2)) order by found.key",
    [accountId, keys?.filter(isStorable) ?? null],
  );
}

async function listInForce<Kind extends DocumentKind>(
  db: Database,
  kind: Kind,
  where: string = "",
  values: readonly unknown[] = [],
): Promise<readonly VersionOf<Kind>[]> {
  const { genuine } = await readGenuine(
    db,
    async () => await db.query<DocumentRow>(`${selectInForce(kind)} ${where}`, values),
    signedParts(kind),
  );
  return genuine.map((row) => withDocument(kind, row, parseOnce(kind, row)));
}

/** Every version, current or not, whose client secret is an environment variable: strategies from before account secrets. */
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
  return genuine.map((row) => ({ accountId: row.accountId, strategy: parseOnce("strategy", row) }));
}

/** The mutable part of a document: its current version, and whether it is retired. */
interface InForce extends SignedRow, Version {
  readonly retired: boolean;
}

interface DocumentCall {
  readonly accountId: string;
  readonly name: string;
}

const readInForce = (kind: DocumentKind) =>
  grouped<DocumentCall, InForce | undefined>(async (db, calls) => {
    const callName = ({ accountId, name }: DocumentCall): string => `${accountId}/${name}`;
    // Concurrent requests usually concern few documents.
    const asked = [...new Map(calls.map((call) => [callName(call), call])).values()];
    const rows = await db.query<InForce & { at: number }>({
      name: `look_up_${kind}`,
      text: `select given.at::int, ${signedColumns(kind, "found")}
        from unnest($1::text[], $2::text[]) with ordinality as given(account_id, name, at)
          join ${kind} found on found.account_id = given.account_id and found.${DOCUMENT_KINDS[kind].name} = given.name`,
      values: [asked.map((call) => call.accountId), asked.map((call) => call.name)],
    });
    const found = inOrder(rows, asked);
    const byName = new Map(asked.map((call, index) => [callName(call), found[index]]));
    return calls.map((call) => byName.get(callName(call)));
  });

const IN_FORCE = { strategy: readInForce("strategy"), blueprint: readInForce("blueprint") };

/**
 * The version in force, retired or not, for many callers at once: one statement reads which one that is each time, and its document is
 * read only once. `name`: a strategy's id, or a Blueprint's key. Not in a transaction. Throws RowRefused.
 */
export async function lookUpDocument<Kind extends DocumentKind>(
  db: Database,
  kind: Kind,
  accountId: string,
  name: string,
): Promise<VersionOf<Kind> | undefined> {
  if (!isStorable(name)) return undefined;
  const inForce = await readOneGenuine(
    db,
    async () => {
      const found = await IN_FORCE[kind](db, { accountId, name });
      return found ? [found] : [];
    },
    (row) => [{ kind, row }],
  );
  if (!inForce) return undefined;
  const document = await findCachedVersion(db, kind, inForce);
  return document && withDocument(kind, inForce, document);
}

/** The text of the version in force, retired or not. Undefined: there is none that this installation has signed. */
export async function findDocumentText(
  db: Database,
  kind: DocumentKind,
  accountId: string,
  name: string,
): Promise<string | undefined> {
  const { genuine } = await readGenuine(
    db,
    async () =>
      await db.query<DocumentRow>(
        `${selectInForce(kind)} where found.account_id = $1 and found.${DOCUMENT_KINDS[kind].name} = $2`,
        [accountId, name],
      ),
    signedParts(kind),
  );
  return genuine[0]?.document;
}

/** The current documents, by account, kind and id: the base of a plan. */
export interface AppliedDocument {
  readonly kind: "account" | "strategy" | "blueprint";
  readonly account: string;
  readonly id: string;
  readonly document: string;
}

/** All but those of test accounts. Documents that this installation did not sign are omitted, so that applying them again restores them. */
export async function listAppliedDocuments(db: Database): Promise<readonly AppliedDocument[]> {
  return (await readAppliedDocuments(db)).documents;
}

/** `refused`: the names of current documents that this installation did not sign. */
export async function readAppliedDocuments(db: Database): Promise<{
  readonly documents: readonly AppliedDocument[];
  readonly refused: readonly Omit<AppliedDocument, "document">[];
}> {
  const accounts = await db.query<{ accountId: string; account: string; document: string }>(
    `select id as "accountId", slug as account, document from account where test_of is null`,
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
    const ofAccounts = <Row extends { readonly accountId: string }>(rows: readonly Row[]) =>
      rows.flatMap((row) => {
        const account = slugs.get(row.accountId);
        return account === undefined ? [] : [{ ...row, account }];
      });
    for (const { account, id, key, document } of ofAccounts(genuine))
      documents.push({ kind, account, id: key ?? id, document });
    for (const { account, id, key } of ofAccounts(refusedRows))
      refused.push({ kind, account, id: key ?? id });
  }
  return { documents, refused };
}
