import { existsSync, readFileSync } from "node:fs";
import type { Command } from "commander";
import type { Database } from "#db/connection/pool.ts";
import { keepFile } from "#vault/key-source.ts";
import { generateMasterKey, MasterKeyError, readPublicKey } from "#vault/master-key.ts";
import type { Composition } from "./composition.ts";
import { CommandFailed, print, tell } from "./output.ts";
import { openOwnSigning } from "./own-signing.ts";
import { openProgressBar } from "./progress-bar.ts";

const MEGABYTE = 1_048_576;

export function addBackup(program: Command, composition: Composition): void {
  program
    .command("backup")
    .description(
      "write all rows and objects into one sealed file, while the service runs; the keys are not in it",
    )
    .argument("<file>", "a new file")
    .option("--recipient <file>", "seal it to the public key in this file (default: the vault's primary key)")
    .option(
      "--new-recipient",
      "make a key pair for backups instead: <file> gets the private key, <file>.pub the public one",
    )
    .option("--json", "print what was written as JSON")
    .addHelpText(
      "after",
      "\nExamples:\n  latchkey backup /backup/monday.latchkey\n  latchkey backup --new-recipient backup.key\n" +
        "  latchkey backup --recipient backup.key.pub /backup/monday.latchkey",
    )
    .action(async (file: string, options: BackupOptions) =>
      options.newRecipient ? await makeRecipient(file) : await backUp(composition, file, options),
    );
}

interface BackupOptions {
  readonly recipient?: string;
  readonly newRecipient?: boolean;
  readonly json?: boolean;
}

async function backUp(composition: Composition, file: string, options: BackupOptions): Promise<void> {
  const signing = openOwnSigning(composition);
  const given = options.recipient === undefined ? null : readRecipient(options.recipient);
  const { createBackup } = await import("#actions/backups/create-backup.ts");
  const blobs = await composition.openStore();
  const bar = openProgressBar("Backing up, in MB,");
  const written = await composition.withDatabase(async (db) => {
    const recipient = given ?? (await readPrimary(db));
    const onProgress = (done: number, total: number): void =>
      bar.show(Math.round(done / MEGABYTE), Math.round(total / MEGABYTE));
    return await createBackup({ db, blobs, signing, recipient, file, onProgress });
  });
  bar.end();
  const { takenAt, bytes, rows, objects, missing, kid, masterKeys } = written;
  if (options.json)
    return print(
      JSON.stringify({
        file,
        taken_at: takenAt,
        bytes,
        rows,
        objects,
        missing,
        kid,
        master_keys: masterKeys,
      }),
    );
  print(
    `Wrote ${file}: ${rows} rows and ${objects} objects as of ${takenAt}, ${(bytes / MEGABYTE).toFixed(1)} MB.`,
  );
  if (missing > 0)
    tell(
      `${missing} objects to which rows refer are not in the object store: \`latchkey doctor --deep\` lists them.`,
    );
  print(
    `A restore needs the ${given === null ? "master key" : "private key of the recipient"} ${kid} to open the file, the master ` +
      `${masterKeys.length === 1 ? "key" : "keys"} ${masterKeys.join(", ")} to open the credentials in it, and the signing key. None of them is ` +
      "in the file: keep them apart from it.",
  );
}

async function readPrimary(db: Database): Promise<{ readonly kid: string; readonly publicJwk: string }> {
  const { listVaultKeys } = await import("#db/credentials/vault-keys.ts");
  const primary = (await listVaultKeys(db)).find(({ isPrimary }) => isPrimary);
  if (primary !== undefined) return primary;
  throw new CommandFailed(
    "The vault has no key to which a backup could be sealed. Run `latchkey doctor`, which says why, or give one with --recipient.",
  );
}

function readRecipient(file: string): { readonly kid: string; readonly publicJwk: string } {
  let publicJwk;
  try {
    publicJwk = readFileSync(file, "utf8").trim();
  } catch (error) {
    throw new CommandFailed(
      `The recipient's file ${file} can't be read (${(error as NodeJS.ErrnoException).code}). Nothing was written.`,
    );
  }
  try {
    return { kid: readPublicKey(publicJwk).kid, publicJwk };
  } catch (error) {
    if (!(error instanceof MasterKeyError)) throw error;
    throw new CommandFailed(
      `${file} is not the public key of a recipient: it must hold one public JSON Web Key on X25519, as \`latchkey backup --new-recipient\` ` +
        "writes it into FILE.pub. Nothing was written.",
    );
  }
}

async function makeRecipient(file: string): Promise<void> {
  const { fileText, publicJwk, kid } = generateMasterKey();
  for (const each of [file, `${file}.pub`])
    if (existsSync(each))
      throw new CommandFailed(`${each} already exists. Name a new file; nothing was written.`);
  await keepFile(file, fileText, "create");
  await keepFile(`${file}.pub`, `${publicJwk}\n`, "create");
  print(
    `Made the key ${kid}. The private key is in ${file}: take it off this machine. Backups need only ${file}.pub.`,
  );
}
