import { toYaml } from "#actions/config/export-config.ts";
import { OperatorError, accountIdsOf, requireAccount } from "#actions/operator-error.ts";
import type { DocumentKind } from "#db/config-documents.ts";
import { findSource } from "#db/document-sources.ts";
import {
  findSeenDocument,
  listSeenDocuments,
  listSeenVersions,
  type SeenDocument,
} from "#db/operators/operator-config.ts";
import type { Database } from "#db/connection/pool.ts";
import { diffDocuments, type Difference } from "#domain/config-diff.ts";
import type { JsonObject } from "#domain/json.ts";
import { textIn } from "#domain/language.ts";
import { makeNamedPage, readNamedPage } from "#domain/page-cursor.ts";
import { notFound } from "#domain/problem.ts";
import { readBlueprint } from "#domain/blueprint.ts";
import { RowRefused } from "#domain/refused-row.ts";
import { readStrategy } from "#domain/strategy.ts";
import { must } from "#lib/assert.ts";
import { describeBlueprint } from "./describe-blueprint.ts";
import { describeForm } from "./describe-form.ts";

export interface DocumentQuery {
  cursor?: string;
  limit?: number;
  account?: string;
  retired?: boolean;
}

/** A document that has versions, as a path names it. */
export interface DocumentName {
  readonly kind: DocumentKind;
  readonly account: string;
  readonly name: string;
}

const treeOf = ({ document }: SeenDocument): JsonObject => JSON.parse(document) as JsonObject;

const listDocuments = async <Item>(
  db: Database,
  kind: DocumentKind,
  query: DocumentQuery,
  limit: readonly string[] | null,
  show: (row: SeenDocument) => Item,
) => {
  const page = readNamedPage(query, 2);
  const accountIds = await accountIdsOf(db, query.account, limit);
  const rows = await listSeenDocuments(db, kind, { accountIds, retired: query.retired ?? null }, page);
  return makeNamedPage(rows, page, ({ account, name }) => [account, name], show);
};

const inForce = (row: SeenDocument) => ({
  account: row.account,
  version: row.version,
  retired: row.retired,
  applied_at: row.appliedAt.toISOString(),
  applied_by: row.appliedBy,
});

function showBlueprint(row: SeenDocument) {
  return {
    key: row.name,
    name: readBlueprint(treeOf(row)).name,
    ...inForce(row),
    last_run: row.lastRunId === null ? null : lastRunOf(row.lastRunId, row),
    recent_runs: { completed: row.recentCompleted, failed: row.recentFailed },
  };
}

const lastRunOf = (id: string, { lastRunStatus, lastRunStep, lastRunAt }: SeenDocument) => ({
  id,
  status: must(lastRunStatus, "the last run's status"),
  progress_step: must(lastRunStep, "the last run's step"),
  created_at: must(lastRunAt, "the last run's time").toISOString(),
});

function showStrategy(row: SeenDocument) {
  const { name, login, hosts, fields } = readStrategy(treeOf(row));
  return {
    id: row.name,
    name: textIn(name, "en"),
    login_type: login.type,
    hosts: [...hosts],
    fields: fields.map(({ key }) => key),
    ...inForce(row),
  };
}

/** A page of Blueprints, by account and key. Throws Problem 422, OperatorError. */
export const listBlueprints = async (db: Database, query: DocumentQuery, limit: readonly string[] | null) =>
  await listDocuments(db, "blueprint", query, limit, showBlueprint);

/** A page of strategies, by account and id. Throws Problem 422, OperatorError. */
export const listStrategies = async (db: Database, query: DocumentQuery, limit: readonly string[] | null) =>
  await listDocuments(db, "strategy", query, limit, showStrategy);

/** The current version with its content. Throws Problem 404, OperatorError. */
export async function getBlueprint(db: Database, name: Omit<DocumentName, "kind">) {
  const row = await requireDocument(db, { kind: "blueprint", ...name });
  return {
    ...showBlueprint(row),
    ...describeBlueprint(treeOf(row)),
    yaml: await yamlOf(db, "blueprint", row),
  };
}

/** As it was written, if that is known. */
export const yamlOf = async (db: Database, kind: DocumentKind, row: SeenDocument): Promise<string> =>
  toYaml(row.document, await findSource(db, { kind, ...row }, row.version));

/** Throws Problem 404, OperatorError. */
export async function getStrategy(db: Database, name: Omit<DocumentName, "kind">) {
  const row = await requireDocument(db, { kind: "strategy", ...name });
  return {
    ...showStrategy(row),
    form: describeForm(treeOf(row), "en"),
    yaml: await yamlOf(db, "strategy", row),
  };
}

/** The version in force, or another one. Throws Problem 404, OperatorError. */
export async function requireDocument(
  db: Database,
  { kind, account, name }: DocumentName,
  version: number | null = null,
): Promise<SeenDocument> {
  const { id: accountId } = await requireAccount(db, account);
  const row = await findSeenDocument(db, kind, { accountId, name, version }).catch(explainRefused);
  if (!row) throw notFound(kind === "blueprint" ? "Blueprint" : "Strategy");
  return row;
}

/** A row that this installation did not write is neither shown nor applied. */
function explainRefused(error: unknown): never {
  if (!(error instanceof RowRefused)) throw error;
  throw new OperatorError(`${error.message} Apply the document again, from your own copy of it.`);
}

/** A page of a document's versions, the last one first. Throws Problem 404, 422, OperatorError. */
export async function listVersions(
  db: Database,
  name: DocumentName,
  query: { cursor?: string; limit?: number },
) {
  const page = readNamedPage(query, 1);
  const current = await requireDocument(db, name);
  const rows = await listSeenVersions(db, name.kind, current, page);
  return makeNamedPage(
    rows,
    page,
    ({ version }) => [String(version)],
    (row) => ({
      version: row.version,
      applied_at: row.appliedAt.toISOString(),
      applied_by: row.appliedBy,
      is_in_force: row.version === current.version,
    }),
  );
}

/** A version, and its differences from another one (default: the previous one). Throws Problem 404, OperatorError. */
export async function getVersion(
  db: Database,
  name: DocumentName,
  request: { readonly version: string; readonly against: number | undefined },
) {
  const row = await requireDocument(db, name, readVersion(request.version));
  const against = request.against ?? row.version - 1;
  const other = against === 0 ? null : await requireDocument(db, name, against);
  return {
    version: row.version,
    applied_at: row.appliedAt.toISOString(),
    applied_by: row.appliedBy,
    yaml: await yamlOf(db, name.kind, row),
    against: other && other.version,
    differences: other === null ? [] : diffDocuments(treeOf(other), treeOf(row)).map(showDifference),
  };
}

/** Parses a version from a path. Throws Problem 404 if it is not a number. */
function readVersion(text: string): number {
  if (!/^[1-9]\d{0,8}$/.test(text)) throw notFound("Version");
  return Number(text);
}

/** The value as JSON text; `null` if the place is absent. */
export const showDifference = ({ path, before, after }: Difference) => ({
  path,
  before: before === undefined ? null : JSON.stringify(before),
  after: after === undefined ? null : JSON.stringify(after),
});
