import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import type { Command } from "commander";
import type { ExportedDocument } from "#actions/config/export-config.ts";
import type { Composition } from "./composition.ts";
import { CommandFailed, print } from "./output.ts";
import { exportRemotely } from "./remote-documents.ts";

export function addExport(program: Command, composition: Composition): void {
  program
    .command("export")
    .description("print the current documents as YAML for `apply`, or write one file per document")
    .option("--account <slug>", "only this account")
    .option("-o, --output <folder>", "a folder for the files; existing files are not replaced")
    .addHelpText("after", "\nExample:\n  latchkey export --account acme -o config")
    .action(async (options: { account?: string; output?: string }) => {
      const documents = await readDocuments(composition, options.account);
      if (options.output === undefined)
        return print(
          documents
            .map(({ yaml }) => yaml)
            .join("---\n")
            .trimEnd(),
        );
      for (const document of documents) writeDocument(options.output, document);
      print(`Wrote ${documents.length} document${documents.length === 1 ? "" : "s"} to ${options.output}.`);
    });
}

async function readDocuments(
  composition: Composition,
  account: string | undefined,
): Promise<readonly ExportedDocument[]> {
  if (composition.isRemote()) return await exportRemotely(composition, account);
  const { exportConfig } = await import("#actions/config/export-config.ts");
  return await composition.withDatabase(async (db) => await exportConfig(db, account ?? null));
}

const FILES = {
  account: () => ["account.yaml"],
  strategy: (id: string) => ["strategies", `${id}.yaml`],
  blueprint: (id: string) => ["blueprints", `${id}.yaml`],
} as const;

function writeDocument(folder: string, { kind, account, id, yaml }: ExportedDocument): void {
  const file = join(folder, account, ...FILES[kind](id));
  mkdirSync(dirname(file), { recursive: true });
  try {
    writeFileSync(file, yaml, { flag: "wx" });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
    throw new CommandFailed(`${file} already exists. Choose an empty folder.`);
  }
}

export function addSchema(program: Command, composition: Composition): void {
  program
    .command("schema")
    .description("print the JSON Schema of all documents, for editors")
    .addHelpText("after", "\nExample:\n  latchkey schema > latchkey.schema.json")
    .action(async () => {
      await composition.loadNodeTypes();
      const { configSchema } = await import("#actions/config/config-schema.ts");
      print(JSON.stringify(configSchema(), null, 2));
    });
}
