import { findDetailedRun } from "#db/operators/operator-runs.ts";
import type { Database } from "#db/connection/pool.ts";
import { findRunOfAnyAccount } from "#db/runs/runs.ts";
import { readRunReference } from "#domain/ids.ts";
import type { JsonObject } from "#domain/json.ts";
import { notFound } from "#domain/problem.ts";
import { describeBlueprint } from "./describe-blueprint.ts";
import { requireDocument } from "./get-documents.ts";

/** How the nodes of the version that a run executes are connected. Throws Problem 404. */
export async function getRunGraph(db: Database, reference: string) {
  const parsed = readRunReference(reference);
  const found = parsed && (await findRunOfAnyAccount(db, parsed));
  const run = found && (await findDetailedRun(db, found.id));
  if (!run) throw notFound("Run");
  // A test login has nothing but its login.
  if (run.blueprint === null) return { nodes: [], edges: [] };
  const name = { kind: "blueprint", account: run.account, name: run.blueprint } as const;
  const { document } = await requireDocument(db, name, run.blueprintVersion);
  return describeBlueprint(JSON.parse(document) as JsonObject).graph;
}
