import type { Command } from "commander";
import type { ListedCredential } from "#db/login-lockouts.ts";
import type { Composition } from "./composition.ts";
import { CommandFailed, print, table } from "./output.ts";
import { openOwnSigning } from "./own-signing.ts";

/** For operators on the machine. There is no such list on the public API, and no secret in this one. */
export function addCredentials(program: Command, composition: Composition): void {
  const credentials = program
    .command("credentials")
    .description("list credentials, and unlock one whose logins the target rejected")
    .addHelpText(
      "after",
      "\nExamples:\n  latchkey credentials list --account acme\n  latchkey credentials unlock cred_0VrJ…",
    );
  credentials
    .command("list")
    .description("list credentials; what they hold is shown nowhere")
    .option("--account <name>", "only those of one account")
    .option("--json", "print the list as JSON")
    .addHelpText("after", "\nExample:\n  latchkey credentials list --account acme")
    .action(async (options: { account?: string; json?: boolean }) => await list(composition, options));
  credentials
    .command("unlock")
    .description("let runs log in again at once, after rejected logins")
    .argument("<id>", "its id (cred_…), as `credentials list` and the failed run show it")
    .addHelpText("after", "\nExample:\n  latchkey credentials unlock cred_0VrJ…")
    .action(async (id: string) => {
      const { unlockCredential } = await import("#actions/unlock-credential.ts");
      const signing = openOwnSigning(composition);
      const found = await composition.withDatabase(async (db) => await unlockCredential(db, signing, id));
      if (!found)
        throw new CommandFailed(`There is no credential ${id}. \`latchkey credentials list\` shows the ids.`);
      print(`Unlocked ${id}.`);
    });
}

async function list(composition: Composition, options: { account?: string; json?: boolean }): Promise<void> {
  const [{ requireAccount }, { listCredentials }] = await Promise.all([
    import("#actions/operator-error.ts"),
    import("#db/login-lockouts.ts"),
  ]);
  const { account: slug } = options;
  const rows = await composition.withDatabase(
    async (db) => await listCredentials(db, slug === undefined ? null : (await requireAccount(db, slug)).id),
  );
  if (options.json) return print(JSON.stringify(rows));
  if (rows.length === 0)
    return print("There are no credentials yet: they come from hosted forms that end users submit.");
  print(
    table(
      ["ID", "ACCOUNT", "STRATEGY", "NAME", "CREATED", "STATE"],
      rows.map((row) => [
        row.id,
        row.account,
        row.strategy,
        row.name ?? "",
        minute(row.createdAt),
        stateOf(row),
      ]),
    ),
  );
}

const minute = (date: Date): string => date.toISOString().slice(0, 16).replace("T", " ");

function stateOf({ lockedUntil, rejections }: ListedCredential): string {
  if (lockedUntil) return `locked until ${minute(lockedUntil)} (${rejections} rejected)`;
  return rejections > 0 ? `open (${rejections} rejected)` : "open";
}
