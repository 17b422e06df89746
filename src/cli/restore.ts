import { existsSync } from "node:fs";
import { join } from "node:path";
import type { Command } from "commander";
import type { VerifiedBackup } from "#actions/backups/read-backup.ts";
import { openFileSource, readKeys } from "#vault/key-source.ts";
import type { Composition } from "./composition.ts";
import { CommandFailed, print, tell } from "./output.ts";
import { openOwnSigning } from "./own-signing.ts";
import { openProgressBar } from "./progress-bar.ts";

const MEGABYTE = 1_048_576;

export function addRestore(program: Command, composition: Composition): void {
  program
    .command("restore")
    .description("restore a backup into an empty database and store; its keys must be in place")
    .argument("<file>", "a file that `latchkey backup` wrote")
    .option("--identity <file>", "the recipient's private key (default: the master key)")
    .option(
      "--tombstones <file...>",
      "tombstone files of all API machines, for deletes since the backup (default: the one in the data folder, if there is one)",
    )
    .option("--adopt-store", "the object store belongs to an installation that is not used any more")
    .option("--check", "only check the whole file and the keys; restore nothing")
    .option("--json", "print the counts as JSON")
    .addHelpText(
      "after",
      "\nExamples:\n  latchkey restore --check /backup/monday.latchkey\n" +
        "  latchkey restore /backup/monday.latchkey --tombstones api-1/tombstones.ndjson",
    )
    .action(async (file: string, options: RestoreOptions) => await restore(composition, file, options));
}

interface RestoreOptions {
  readonly identity?: string;
  readonly tombstones?: string[];
  readonly adoptStore?: boolean;
  readonly check?: boolean;
  readonly json?: boolean;
}

async function restore(composition: Composition, file: string, options: RestoreOptions): Promise<void> {
  const signing = openOwnSigning(composition);
  const tombstones = findTombstones(composition, options.tombstones);
  const { readRecipient, verifyBackup } = await import("#actions/backups/read-backup.ts");
  const actions = await import("#actions/backups/restore-backup.ts");
  const kid = await readRecipient(file);
  const { masterKey } = await readMasterKeys(composition);
  const keys =
    options.identity === undefined ? masterKey : (await readKeys(openFileSource(options.identity))).masterKey;
  requireOpener(file, kid, [...keys.privateKeys.keys()], options.identity);
  const backup = { file, keys, signing };
  const checked = await withBar(
    "Checking",
    async (onProgress) => await verifyBackup({ ...backup, onProgress }),
  );
  actions.requireKeys(checked.manifest, { signing, masterKey });
  if (options.check) return report(file, checked, null, options);
  const blobs = await composition.openStore();
  if (!options.adoptStore) await actions.requireFreeStore(blobs);
  await withBar("Restoring", async (onProgress) =>
    composition.loadEmptyDatabase(
      checked.manifest.migrations,
      async (owner) => await actions.loadBackup(owner, blobs, { ...backup, onProgress }, checked),
    ),
  );
  const reconciled = await composition.withDatabase(async (db) => {
    await composition.openVault(db);
    return await actions.settleRestore({ db, blobs, signing }, checked, tombstones);
  });
  await report(file, checked, reconciled, options);
}

async function withBar<T>(
  what: string,
  work: (onProgress: (done: number, total: number) => void) => Promise<T>,
): Promise<T> {
  const bar = openProgressBar(`${what}, in MB,`);
  const done = await work((read, total) =>
    bar.show(Math.round(read / MEGABYTE), Math.round(total / MEGABYTE)),
  );
  bar.end();
  return done;
}

function findTombstones(composition: Composition, given: readonly string[] | undefined): readonly string[] {
  const own = join(composition.config().dataDir, "tombstones.ndjson");
  const files = given ?? (existsSync(own) ? [own] : []);
  const missing = files.find((file) => !existsSync(file));
  if (missing === undefined) return files;
  throw new CommandFailed(
    `There is no ${missing}. Give the tombstone files of your API machines with --tombstones; nothing was written.`,
  );
}

async function readMasterKeys(composition: Composition): ReturnType<typeof readKeys> {
  if (composition.hasMasterKey()) return await readKeys(composition.keySource());
  throw new CommandFailed(
    `There is no master key: put the one of the backup's installation into ${composition.config().masterKeyFile}, from where you keep it. ` +
      "Nothing was written.",
  );
}

function requireOpener(
  file: string,
  kid: string,
  held: readonly string[],
  identity: string | undefined,
): void {
  if (held.includes(kid)) return;
  throw new CommandFailed(
    `${file} is sealed to the key ${kid}, and ${identity ?? "the master key's file"} has only ${held.join(", ")}. Give the file with the private ` +
      "key: with --identity for a recipient's, else as the master key. Nothing was written.",
  );
}

async function report(
  file: string,
  { manifest, totals }: VerifiedBackup,
  reconciled: { readonly tombstones: number; readonly deleted: number } | null,
  { json }: RestoreOptions,
): Promise<void> {
  const { countRows } = await import("#actions/backups/restore-backup.ts");
  const [rows, { objects, missing }] = [countRows(totals), totals];
  const { takenAt, masterKeys } = manifest;
  const deleted = reconciled?.deleted ?? 0;
  if (json)
    return print(
      JSON.stringify({
        file,
        restored: reconciled !== null,
        taken_at: takenAt,
        rows,
        objects,
        missing,
        deleted,
        master_keys: masterKeys,
      }),
    );
  const what = `${rows} rows and ${objects} objects as of ${takenAt}`;
  if (reconciled === null)
    return print(`${file} is whole, and the keys at hand open it: ${what}. Nothing was restored.`);
  print(`Restored ${what}.`);
  if (reconciled.tombstones > 0)
    print(
      `${reconciled.tombstones} deleted credentials in the tombstones; ${deleted} had been restored and are deleted again.`,
    );
  else
    tell(
      `No tombstones: credentials that were deleted after ${takenAt} are back. If there were any, run \`latchkey restore-reconcile --tombstones FILE\` ` +
        "before serving.",
    );
  if (missing > 0) tell(`${missing} objects were not in the object store when the backup was made.`);
  print("Next: latchkey doctor --deep, then latchkey serve");
}
