import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import type { Command } from "commander";
import { Secret } from "#lib/secret.ts";
import type { CommandConfig, Composition } from "./composition.ts";
import { CommandFailed, print } from "./output.ts";
import { openOwnSigning } from "./own-signing.ts";

export function addInit(program: Command, composition: Composition): void {
  program
    .command("init")
    .description("create the data folder: embedded database, keys, first operator; overwrites nothing")
    .option("--operator <email>", "email of the first operator", "admin@localhost")
    .addHelpText("after", "\nExample:\n  latchkey init && latchkey serve")
    .action(async (options: { operator: string }) => await init(composition, options.operator));
}

async function init(composition: Composition, operatorEmail: string): Promise<void> {
  const [
    { createFirstOperator },
    { checkSigningKey },
    { findAnyVaultKeyId },
    { generateSigningKey },
    { generateMasterKey },
  ] = await Promise.all([
    import("#actions/operators/create-first-operator.ts"),
    import("#actions/keys/check-signing-key.ts"),
    import("#db/credentials/vault-keys.ts"),
    import("#lib/signing.ts"),
    import("#vault/master-key.ts"),
  ]);
  const config = composition.config();
  const isNew = !existsSync(config.dataDir);
  makeFolder(config.dataDir);
  print(`${isNew ? "Created" : "Found"} the data folder ${config.dataDir}`);
  // The database first: one that is in use must never get a second set of keys by accident.
  await composition.withDatabase(
    async (db) => {
      print(
        config.databaseUrl
          ? "The database of DATABASE_URL is up to date"
          : "The embedded PostgreSQL is up to date",
      );
      const kid = await findAnyVaultKeyId(db);
      const source = composition.keySource();
      if (kid !== undefined) refuseNewKeys(config, composition.hasMasterKey(), kid);
      await keepOrCreate("signing key", config.signingKeyFile, config.signingKey !== null, async () =>
        writeFileSync(config.signingKeyFile, `${generateSigningKey()}\n`, {
          mode: 0o600,
          // `wx`: never overwrites, even when two processes run at once.
          flag: "wx",
          flush: true,
        }),
      );
      await keepOrCreate(
        "master key",
        config.masterKeyFile,
        composition.hasMasterKey(),
        async () => await source.keep?.(new Secret(generateMasterKey().fileText), "create"),
      );
      const signing = openOwnSigning(composition);
      await checkSigningKey(db, signing);
      await composition.openVault(db);
      const operator = await createFirstOperator(db, signing, operatorEmail);
      if (operator)
        print(
          `Created the first operator ${operator.email} with the password ${operator.password} (shown only once; change it at the first sign-in, within 7 days)`,
        );
      else print("Kept the operators");
    },
    { create: true, migrates: true },
  );
  print(
    "\nBack up both key files separately from the database: without the master key nobody can decrypt the stored credentials.",
  );
  print("Next: latchkey serve");
}

function makeFolder(path: string): void {
  try {
    mkdirSync(path, { recursive: true, mode: 0o700 });
  } catch (error) {
    const { code = "unknown error" } = error as NodeJS.ErrnoException;
    throw new CommandFailed(
      `The data folder ${path} can't be created here (${code}). Set LATCHKEY_DATA_DIR to a folder that this user may write to.`,
    );
  }
}

/** The keys of a database in use can't be replaced, only restored. */
function refuseNewKeys(config: CommandConfig, hasMasterKey: boolean, kid: string): void {
  if (!hasMasterKey) {
    throw new CommandFailed(
      `This database is sealed with master key ${kid}, and ${config.masterKeyFile} does not exist. ` +
        "Restore that file from your backup: a new key could not decrypt the stored credentials.",
    );
  }
  if (!config.signingKey) {
    throw new CommandFailed(
      `This database is in use, and its signing key ${config.signingKeyFile} does not exist. Restore that file from your ` +
        "backup: with a new key every existing API key, hosted link and download URL would stop working.",
    );
  }
}

async function keepOrCreate(
  what: string,
  file: string,
  isPresent: boolean,
  make: () => Promise<unknown>,
): Promise<void> {
  if (isPresent) return print(`Kept the ${what}`);
  try {
    await make();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
    throw new CommandFailed(
      `Another process has just created ${file}. Run \`latchkey init\` again to check that everything is in place.`,
    );
  }
  print(`Created the ${what} ${file}`);
}
