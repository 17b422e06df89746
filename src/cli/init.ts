import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import type { Command } from "commander";
import { createFirstOperator } from "#actions/create-first-operator.ts";
import { listVaultKeys } from "#db/vault-keys.ts";
import { generateSigningKey } from "#lib/signing.ts";
import { generateMasterKey } from "#vault/master-key.ts";
import type { Composition } from "./composition.ts";
import { CommandFailed, print } from "./output.ts";

export function addInit(program: Command, composition: Composition): void {
  program
    .command("init")
    .description("make the data folder: embedded database, keys, first operator; overwrites nothing")
    .option("--operator <email>", "sign-in name of the first operator", "admin@localhost")
    .addHelpText("after", "\nExample:\n  latchkey init && latchkey serve")
    .action(async (options: { operator: string }) => await init(composition, options.operator));
}

async function init(composition: Composition, operatorEmail: string): Promise<void> {
  const config = composition.config();
  const isNew = !existsSync(config.dataDir);
  mkdirSync(config.dataDir, { recursive: true, mode: 0o700 });
  print(`${isNew ? "Made" : "Found"} the data folder ${config.dataDir}`);
  // The database first: a database with a vault key and no master key must never get a second one by accident.
  await composition.withDatabase(async (db) => {
    print(config.databaseUrl ? "The database of DATABASE_URL is up to date" : "The embedded PostgreSQL is up to date");
    const vaultKeys = await listVaultKeys(db);
    if (!config.masterKey && vaultKeys.length > 0) {
      throw new CommandFailed(
        `This database is sealed with master key ${vaultKeys[0]?.kid}, and ${config.masterKeyFile} does not exist. ` +
          "Restore that file from your backup: a new key could not open what is stored.",
      );
    }
    keepOrWrite("signing key", config.signingKeyFile, config.signingKey !== null, `${generateSigningKey()}\n`);
    keepOrWrite("master key", config.masterKeyFile, config.masterKey !== null, generateMasterKey().fileText);
    await composition.openVault(db);
    const operator = await createFirstOperator(db, operatorEmail);
    if (operator) print(`Made the first operator ${operator.email} with the password ${operator.password} (shown this once)`);
    else print("Kept the operators");
  });
  print("\nBack up both key files apart from the database: without the master key nobody can open what is stored.");
  print("Next: latchkey serve");
}

function keepOrWrite(what: string, file: string, exists: boolean, text: string): void {
  if (exists) return print(`Kept the ${what}`);
  // `wx`: never overwrites, also when two run at once.
  writeFileSync(file, text, { mode: 0o600, flag: "wx" });
  print(`Made the ${what} ${file}`);
}
