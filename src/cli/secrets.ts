import { readFileSync } from "node:fs";
import { text as readAll } from "node:stream/consumers";
import type { Command } from "commander";
import type { Composition } from "./composition.ts";
import { CommandFailed, EXIT_CODES, print, printItems, table, tell } from "./output.ts";
import { openOwnSigning } from "./own-signing.ts";
import { listOf, minute } from "./pages.ts";

/** Secrets that an account's strategies use and that no document holds. They can be set but never read. */
export function addSecrets(program: Command, composition: Composition): void {
  const secrets = program
    .command("secrets")
    .description("set, list and delete the secrets of OAuth clients, or import them from the environment")
    .addHelpText(
      "after",
      "\nExamples:\n  latchkey secrets set --account acme NORTHWIND --for https://login.northwind.example --file secret.txt\n" +
        "  latchkey secrets list --account acme",
    );
  secrets
    .command("set")
    .description("store a secret, sealed; its value is read from a file or standard input")
    .argument("<name>", "its name in strategies: client_secret: { secret: NAME }")
    .requiredOption("--account <name>", "the account's name in its document")
    .requiredOption("--for <origin...>", "the only origins that it may be sent to")
    .option("--file <path>", "the file that holds the value (default: standard input)")
    .addHelpText(
      "after",
      "\nA secret of that name is replaced together with its origins. One line break at the end of the value is removed.\n" +
        '\nExample:\n  printf %s "$VALUE" | latchkey secrets set --account acme NORTHWIND --for https://login.northwind.example',
    )
    .action(async (name: string, options: SetOptions) => await set(composition, name, options));
  secrets
    .command("list")
    .description("list secrets and where they may be sent; their values are never shown")
    .option("--account <name>", "only those of one account")
    .option("--json", "print the list as JSON")
    .addHelpText("after", "\nExample:\n  latchkey secrets list --account acme")
    .action(async (options: { account?: string; json?: boolean }) => await list(composition, options));
  secrets
    .command("delete")
    .description("delete a secret immediately")
    .argument("<name>", "its name")
    .requiredOption("--account <name>", "the account's name in its document")
    .option("--force", "even if current strategies use it: their sign-ins and runs will fail")
    .addHelpText("after", "\nExample:\n  latchkey secrets delete --account acme NORTHWIND")
    .action(async (name: string, { account, force = false }: { account: string; force?: boolean }) => {
      const { deleteAccountSecretAs } = await import("#actions/secrets/delete-account-secret.ts");
      const signing = openOwnSigning(composition);
      await composition.withDatabase(async (db) => {
        await deleteAccountSecretAs({ db, signing }, { kind: "cli" }, { account, name, force });
        await tellProblems(composition, db, account, name);
      });
      print(`Deleted the secret ${name} of ${account}.`);
    });
  secrets
    .command("import-env")
    .description("import the secrets of strategies that name environment variables")
    .addHelpText(
      "after",
      "\nRun it with the environment of `latchkey serve`. It may be run again.\n\nExample:\n  latchkey secrets import-env",
    )
    .action(async () => await importEnvironment(composition));
}

async function importEnvironment(composition: Composition): Promise<void> {
  const { importEnvironmentSecrets } = await import("#actions/secrets/import-environment-secrets.ts");
  const signing = openOwnSigning(composition);
  const imported = await composition.withDatabase(
    async (db) =>
      await importEnvironmentSecrets(
        { db, vault: await composition.openSealer(db), signing },
        composition.environmentSecret,
      ),
  );
  if (imported.length === 0) return print("No strategy names an environment variable.");
  let left = 0;
  for (const { account, strategyId, name, origins, problem } of imported) {
    const strategy = `${account}/${strategyId}`;
    if (problem === null) {
      print(`Imported ${name} of ${strategy} as the secret ${name}, for ${origins.join(", ")}.`);
      continue;
    }
    left += 1;
    tell(`${name} of ${strategy} was not imported: ${problem}.`);
  }
  if (left < imported.length)
    print(
      "Change your files too: replace `client_secret_env: NAME` with `client_secret: { secret: NAME }`. Then unset the variables.",
    );
  if (left > 0)
    throw new CommandFailed(
      left === 1 ? "One strategy was not imported." : `${left} strategies were not imported.`,
    );
}

interface SetOptions {
  account: string;
  for: string[];
  file?: string;
}

async function set(composition: Composition, name: string, options: SetOptions): Promise<void> {
  const value = await readValue(options.file);
  const { setAccountSecret } = await import("#actions/secrets/set-account-secret.ts");
  const signing = openOwnSigning(composition);
  const { account, for: origins } = options;
  const change = await composition.withDatabase(async (db) => {
    const vault = await composition.openSealer(db);
    const done = await setAccountSecret({ db, vault, signing }, { account, name, value, origins });
    await tellProblems(composition, db, account, name);
    return done;
  });
  print(
    `${change === "created" ? "Set" : "Replaced"} the secret ${name} of ${account}, for ${origins.join(", ")}.`,
  );
}

/** Current strategies that this change leaves without their secret. */
async function tellProblems(
  composition: Composition,
  db: Parameters<Parameters<Composition["withDatabase"]>[0]>[0],
  account: string,
  name: string,
): Promise<void> {
  const { describeSecretProblem, listSecretProblems } =
    await import("#actions/secrets/list-secret-problems.ts");
  const problems = await listSecretProblems(db, composition.secretSources());
  for (const problem of problems.filter((each) => each.account === account && each.name === name))
    tell(`warning: ${describeSecretProblem(problem)}.`);
}

/** Never an argument: every user of the machine can see arguments, and shells keep them. */
async function readValue(file: string | undefined): Promise<string> {
  if (file === undefined && process.stdin.isTTY)
    throw new CommandFailed(
      "Give the secret's value in a file (--file secret.txt) or on standard input.",
      EXIT_CODES.usage,
    );
  let value: string;
  try {
    value = file === undefined ? await readAll(process.stdin) : readFileSync(file, "utf8");
  } catch (error) {
    const { code = "unknown error" } = error as NodeJS.ErrnoException;
    throw new CommandFailed(`${file ?? "standard input"} can't be read (${code}).`, EXIT_CODES.usage);
  }
  return value.replace(/\r?\n$/, "");
}

async function list(composition: Composition, options: { account?: string; json?: boolean }): Promise<void> {
  const { listAccountSecrets } = await import("#db/account-secrets.ts");
  const rows = await listOf(composition, options.account, listAccountSecrets);
  if (options.json === true) return printItems(rows);
  if (rows.length === 0) return print("There are no secrets yet: latchkey secrets set --help.");
  print(
    table(
      ["ACCOUNT", "NAME", "FOR", "SET"],
      rows.map((row) => [row.account, row.name, row.origins.join(", "), minute(row.updatedAt)]),
    ),
  );
}
