import { constants, setPriority } from "node:os";
import { InvalidArgumentError, type Command } from "commander";
import type { KeyStatus } from "#actions/vault/master-keys.ts";
import { MASTER_KEY_STATE_NAMES as names } from "#domain/labels/states.ts";
import type { Composition } from "./composition.ts";
import { CommandFailed, print, printItems, table, tell } from "./output.ts";
import { openOwnSigning } from "./own-signing.ts";
import { minute } from "./pages.ts";
import { openProgressBar } from "./progress-bar.ts";

/** Small batches keep the API responsive and hardly take longer: docs/performance.md. */
const BATCH = { standard: 25, most: 5_000 };

/** The vault's keys. docs/keys.md is the runbook; the commands are in the order of a rotation. */
export function addMasterKeyCommands(program: Command, composition: Composition): void {
  const keys = program
    .command("master-key")
    .description("show and rotate the vault's master keys")
    .addHelpText(
      "after",
      "\nTo rotate while the service runs:\n  latchkey master-key add\n  latchkey master-key promote KID\n" +
        "  latchkey master-key rewrap\n  latchkey master-key retire OLD_KID",
    );
  keys
    .command("status")
    .description("show every key: what it seals, and whether its private key is here")
    .option("--json", "print the list as JSON")
    .addHelpText("after", "\nExample:\n  latchkey master-key status")
    .action(async (options: { json?: boolean }) => await status(composition, options.json === true));
  keys
    .command("add")
    .description("create a key, or register one from the keyset; it only decrypts until it is promoted")
    .argument("[kid]", "a key that is already in the keyset")
    .addHelpText("after", "\nExample:\n  latchkey master-key add")
    .action(async (kid: string | undefined) => await add(composition, kid));
  keys
    .command("promote")
    .description("seal with this key from now on; running processes switch within two seconds")
    .argument("<kid>", "its id, as `master-key status` shows it")
    .addHelpText("after", "\nExample:\n  latchkey master-key promote 7Yv1cQ0kqzJp2xWd")
    .action(async (kid: string) => await promote(composition, kid));
  keys
    .command("rewrap")
    .description("reseal everything with the primary key; may be stopped and run again at any time")
    .option("--batch <rows>", "rows at a time", readBatch, BATCH.standard)
    .addHelpText("after", "\nExample:\n  latchkey master-key rewrap")
    .action(async (options: { batch: number }) => await rewrap(composition, options.batch));
  keys
    .command("retire")
    .description("remove a key that nothing is sealed with any more")
    .argument("<kid>", "its id, as `master-key status` shows it")
    .addHelpText("after", "\nExample:\n  latchkey master-key retire 7Yv1cQ0kqzJp2xWd")
    .action(async (kid: string) => await retire(composition, kid));
  keys
    .command("wrap")
    .description("wrap the plain file of the master key with the AWS KMS key of LATCHKEY_MASTER_KEY_KMS")
    .addHelpText("after", "\nExample:\n  LATCHKEY_MASTER_KEY_KMS=alias/latchkey latchkey master-key wrap")
    .action(async () => await wrap(composition));
}

async function status(composition: Composition, asJson: boolean): Promise<void> {
  const { listKeyStatus } = await import("#actions/vault/master-keys.ts");
  const { readKeys } = await import("#vault/key-source.ts");
  const privateHalf = composition.hasMasterKey() ? await readKeys(composition.keySource()) : null;
  const keys = await composition.withDatabase(
    async (db) => await listKeyStatus(db, privateHalf && privateHalf.masterKey),
  );
  if (asJson) return printItems(keys);
  const from = privateHalf?.source.name ?? "";
  print(
    table(
      ["KID", "STATE", "SEALS", "REGISTERED", "PRIVATE KEY"],
      keys.map((key) => [key.kid, STATE_NAMES[key.state], useOf(key), registeredAt(key), placeOf(key, from)]),
    ),
  );
  for (const { kid } of keys.filter(({ state }) => state === "not registered"))
    tell(
      `${kid} is in the keyset but not in use here: it was retired, or the command that added it was killed.`,
    );
}

const STATE_NAMES: Readonly<Record<KeyStatus["state"], string>> = {
  primary: names.primary,
  "opens only": names.decryptsOnly,
  "not registered": names.notRegistered,
};

const useOf = ({ use }: KeyStatus): string =>
  use.map(({ noun, total }) => `${total} ${noun}`).join(", ") || "nothing";

const registeredAt = ({ createdAt }: KeyStatus): string => (createdAt === null ? "" : minute(createdAt));

function placeOf({ hasPrivateHalf }: KeyStatus, from: string): string {
  if (hasPrivateHalf === null) return "no keyset on this machine";
  return hasPrivateHalf ? from : `MISSING in ${from}`;
}

async function add(composition: Composition, kid: string | undefined): Promise<void> {
  const { addKey, registerKey } = await import("#actions/vault/master-keys.ts");
  const source = composition.keySource();
  const { audit } = openOwnSigning(composition);
  if (kid !== undefined) {
    await composition.withDatabase(async (db) => await registerKey(db, audit, source, kid));
    return print(`Registered ${kid}. It only decrypts until you run: latchkey master-key promote ${kid}`);
  }
  const added = await composition.withDatabase(async (db) => {
    // A keyset that does not belong to the database must not grow.
    await composition.openVault(db);
    return await addKey(db, audit, source);
  });
  if (added.kind === "handed_out") {
    // The only place that shows a private key: there is no file to write it to, and the operator has the other keys already.
    print(added.keyset.reveal().trimEnd());
    return tell(
      `Nothing has changed yet. Put the keyset above, which has the new key ${added.kid}, into ${source.name.replace(/^the /, "")} ` +
        `of every process with the worker role and start them again. Then: latchkey master-key add ${added.kid}`,
    );
  }
  print(`Added ${added.kid} to ${source.name}.`);
  tell(
    "Back that file up now, and copy it to every other machine with the worker role: running workers find the key there by " +
      `themselves. Then: latchkey master-key promote ${added.kid}`,
  );
}

async function promote(composition: Composition, kid: string): Promise<void> {
  const { promoteKey } = await import("#actions/vault/master-keys.ts");
  const { audit } = openOwnSigning(composition);
  await composition.withDatabase(async (db) => await promoteKey(db, audit, composition.keySource(), kid));
  print(`${kid} is the primary key.`);
  tell("Values sealed with other keys still open. To reseal them: latchkey master-key rewrap");
}

async function rewrap(composition: Composition, batch: number): Promise<void> {
  const { rewrapSealed } = await import("#actions/vault/rewrap-sealed.ts");
  // The service's requests have priority, so that callers don't notice.
  setPriority(constants.priority.PRIORITY_LOW);
  await composition.withDatabase(async (db) => {
    const vault = await composition.openVault(db);
    const bar = openProgressBar("Resealing");
    const { rewrapped, overtaken, broken } = await rewrapSealed(db, vault, {
      batch,
      onProgress: ({ done, total }) => bar.show(done, total),
    });
    bar.end();
    print(
      `Resealed ${rewrapped} values with ${vault.kid}.` +
        (overtaken === 0 ? "" : ` ${overtaken} were changed or deleted in the meantime.`),
    );
    if (broken.length > 0) {
      throw new CommandFailed(
        `${broken.length} could not be opened and were left unchanged: ${broken.slice(0, 20).join(", ")}` +
          `${broken.length > 20 ? ", …" : ""}. Their rows are damaged, or sealed with a key that is not on this machine.`,
      );
    }
  });
}

async function retire(composition: Composition, kid: string): Promise<void> {
  const { retireKey } = await import("#actions/vault/master-keys.ts");
  await composition.withDatabase(async (db) => await retireKey(db, openOwnSigning(composition).audit, kid));
  print(`Retired ${kid}: nothing in this database needs it any more.`);
  tell(
    "Earlier backups of the database still need its private key. Keep it for as long as you keep them: once it " +
      "is removed from the keyset and destroyed, their sealed values can never be opened again.",
  );
}

async function wrap(composition: Composition): Promise<void> {
  const { masterKeyFile, masterKeyKms } = composition.config();
  if (masterKeyKms === null)
    throw new CommandFailed("Set LATCHKEY_MASTER_KEY_KMS to the id, alias or ARN of the AWS KMS key first.");
  const { openFileSource, readKeys } = await import("#vault/key-source.ts");
  const plain = openFileSource(masterKeyFile);
  await readKeys(plain);
  const wrapped = composition.keySource();
  await wrapped.keep?.(await plain.read(), "replace");
  await readKeys(wrapped);
  print(`Wrapped ${wrapped.name.replace(/^the /, "")}.`);
  tell("The keys were on this disk, and in its backups, in plain text: rotate to a new one.");
}

function readBatch(text: string): number {
  const rows = Number(text);
  if (!/^\d{1,4}$/.test(text) || rows < 1 || rows > BATCH.most)
    throw new InvalidArgumentError(`A number from 1 to ${BATCH.most}.`);
  return rows;
}
