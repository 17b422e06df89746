import type { CheckedDocument } from "#actions/config/check-config.ts";
import { findAccountBySlug } from "#db/accounts.ts";
import { findSeenDocument, type SeenDocument } from "#db/operators/operator-config.ts";
import type { Database } from "#db/connection/pool.ts";
import { diffDocuments } from "#domain/config-diff.ts";
import type { JsonObject } from "#domain/json.ts";
import { invalidField, Problem } from "#domain/problem.ts";
import { RowRefused } from "#domain/refused-row.ts";
import { showDifference } from "./get-documents.ts";

interface Based {
  readonly kind: "strategy" | "blueprint";
  readonly planned: CheckedDocument;
  /** Null: there is none yet. */
  readonly current: SeenDocument | null;
  readonly base: SeenDocument | null;
}

/** Throws Problem 422 if `base_version` is ambiguous. */
async function readBased(
  db: Database,
  documents: readonly CheckedDocument[],
  baseVersion: number,
): Promise<Based> {
  const versioned = documents.flatMap((planned) =>
    planned.kind === "account" ? [] : [{ kind: planned.kind, planned }],
  );
  const [one] = versioned;
  if (!one || versioned.length > 1)
    throw invalidField(
      "base_version",
      "`base_version` needs documents with exactly one Blueprint or strategy.",
    );
  const account = await findAccountBySlug(db, one.planned.account);
  const read = async (version: number | null): Promise<SeenDocument | null> => {
    if (!account) return null;
    const which = { accountId: account.id, name: one.planned.id, version };
    return (await findSeenDocument(db, one.kind, which).catch(forgetRefused)) ?? null;
  };
  return { ...one, current: await read(null), base: baseVersion === 0 ? null : await read(baseVersion) };
}

/** A document that this installation did not write counts as missing: applying the operator's own copy repairs it. */
function forgetRefused(error: unknown): null {
  if (error instanceof RowRefused) return null;
  throw error;
}

/** Both sides of a conflict; null: `baseVersion` is the current version. Throws Problem 422. */
export async function findConflict(db: Database, documents: readonly CheckedDocument[], baseVersion: number) {
  const { current, base, planned } = await readBased(db, documents, baseVersion);
  if ((current?.version ?? 0) === baseVersion) return null;
  const from = treeOf(base);
  return {
    version: current?.version ?? 0,
    applied_at: current?.appliedAt.toISOString() ?? null,
    applied_by: current?.appliedBy ?? null,
    theirs: diffDocuments(from, treeOf(current)).map(showDifference),
    ours: diffDocuments(from, planned.document).map(showDifference),
  };
}

const treeOf = (row: SeenDocument | null): JsonObject =>
  row === null ? {} : (JSON.parse(row.document) as JsonObject);

/** Throws Problem 409 if another version is current, Problem 422. */
export async function requireBase(
  db: Database,
  documents: readonly CheckedDocument[],
  baseVersion: number,
): Promise<void> {
  const { kind, planned, current } = await readBased(db, documents, baseVersion);
  const version = current?.version ?? 0;
  if (version === baseVersion) return;
  const name = `The ${kind === "blueprint" ? "Blueprint" : "strategy"} ${planned.id}`;
  if (version === 0) throw new Problem("conflict", `${name} does not exist yet; nothing was changed.`);
  const by = current?.appliedBy ?? "The command line";
  throw new Problem(
    "conflict",
    baseVersion === 0
      ? `${name} exists already: ${by} published version ${version}. Nothing was changed.`
      : `${name} has changed since version ${baseVersion}: ${by} published version ${version}. Nothing was changed.`,
  );
}
