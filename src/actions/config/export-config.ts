import { listAppliedDocuments } from "#db/config-documents.ts";
import type { Database } from "#db/connection/pool.ts";
import { pinEdition } from "#domain/edition.ts";
import type { JsonObject } from "#domain/json.ts";
import { OperatorError } from "#actions/operator-error.ts";
import { openYaml } from "./open-yaml.ts";

const KINDS = ["account", "strategy", "blueprint"] as const;

/** A document in force, as YAML that `apply` takes. */
export interface ExportedDocument {
  readonly kind: (typeof KINDS)[number];
  readonly account: string;
  readonly id: string;
  readonly yaml: string;
}

/** A stored document as people write it. */
export const toYaml = (document: string): string =>
  openYaml().stringify(pinEdition(JSON.parse(document) as JsonObject), {
    schema: "core",
    lineWidth: 0,
    aliasDuplicateObjects: false,
  });

/** Exports the current documents of one account or of all, accounts first. Applying them again changes nothing. Throws OperatorError. */
export async function exportConfig(
  db: Database,
  account: string | null,
): Promise<readonly ExportedDocument[]> {
  const documents = await listAppliedDocuments(db);
  const chosen = documents.filter((document) => account === null || document.account === account);
  if (account !== null && chosen.length === 0)
    throw new OperatorError(
      `There is no account ${account}. \`latchkey export\` without --account shows all.`,
    );
  const rank = ({ kind, account: slug, id }: ExportedDocument): string =>
    [KINDS.indexOf(kind), slug, id].join("\u0000");
  return chosen
    .map(({ kind, account: slug, id, document }) => ({
      kind,
      account: slug,
      id,
      yaml: toYaml(document),
    }))
    .toSorted((a, b) => (rank(a) < rank(b) ? -1 : 1));
}
