import { listAppliedDocuments } from "#db/config-documents.ts";
import { listSources } from "#db/document-sources.ts";
import type { Database } from "#db/connection/pool.ts";
import { pinEdition } from "#domain/edition.ts";
import type { JsonObject } from "#domain/json.ts";
import { OperatorError } from "#actions/operator-error.ts";
import { openYaml } from "./open-yaml.ts";
import { isTextOf } from "./source-text.ts";

const KINDS = ["account", "strategy", "blueprint"] as const;

/** A document in force, as YAML that `apply` takes. */
export interface ExportedDocument {
  readonly kind: (typeof KINDS)[number];
  readonly account: string;
  readonly id: string;
  readonly yaml: string;
}

/** A stored document as it was written, or else as people write it. `text`: what is stored with its version. */
export const toYaml = (document: string, text: string | null = null): string =>
  text !== null && isTextOf(text, document)
    ? text
    : openYaml().stringify(pinEdition(JSON.parse(document) as JsonObject), {
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
  const texts = new Map((await listSources(db)).map((each) => [nameOf(each), each.text]));
  const rank = ({ kind, account: slug, id }: ExportedDocument): string =>
    [KINDS.indexOf(kind), slug, id].join("\u0000");
  return chosen
    .map(({ kind, account: slug, id, document }) => ({
      kind,
      account: slug,
      id,
      yaml: toYaml(document, texts.get(nameOf({ kind, account: slug, name: id })) ?? null),
    }))
    .toSorted((a, b) => (rank(a) < rank(b) ? -1 : 1));
}

const nameOf = (of: { readonly kind: string; readonly account: string; readonly name: string }): string =>
  JSON.stringify([of.kind, of.account, of.name]);
