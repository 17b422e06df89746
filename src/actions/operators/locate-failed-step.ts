import { readDocuments } from "#actions/config/read-documents.ts";
import type { DocumentKind } from "#db/config-documents.ts";
import { findSeenDocument } from "#db/operators/operator-config.ts";
import type { DetailedRun } from "#db/operators/operator-runs.ts";
import type { Database } from "#db/connection/pool.ts";
import { pathInDocument, readFailedStep } from "#domain/failed-step.ts";
import { RowRefused } from "#domain/refused-row.ts";
import { yamlOf } from "./get-documents.ts";

interface UsedStrategy {
  readonly strategyId: string;
  readonly strategyVersion: number;
}

/** The line and column of the step at which a run has failed, in the text that the dashboard shows of its document's version. */
export async function locateFailedStep(
  db: Database,
  run: Pick<DetailedRun, "accountId" | "blueprint" | "blueprintVersion" | "errorDetail">,
  credentials: readonly UsedStrategy[],
) {
  const failed = readFailedStep(run.errorDetail);
  if (failed === null) return null;
  const kind: DocumentKind = failed.strategy === null ? "blueprint" : "strategy";
  const name = failed.strategy ?? run.blueprint;
  const version =
    kind === "blueprint"
      ? run.blueprintVersion
      : (credentials.find(({ strategyId }) => strategyId === name)?.strategyVersion ?? null);
  if (name === null || version === null) return null;
  const row = await findSeenDocument(db, kind, { accountId: run.accountId, name, version }).catch(
    unlessRefused,
  );
  if (!row) return null;
  const [document] = readDocuments([{ file: name, text: await yamlOf(db, kind, row) }]).documents;
  const path = document && pathInDocument(failed, document.value);
  if (!document || !path) return null;
  return { document: kind, name, version, step: failed.place, ...document.position(path) };
}

function unlessRefused(error: unknown): undefined {
  if (!(error instanceof RowRefused)) throw error;
}
