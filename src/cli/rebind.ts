import type { Command } from "commander";
import type { RebindChoice, Rebinding, RebindPlan } from "#actions/credentials/rebind-credentials.ts";
import type { Composition } from "./composition.ts";
import { CommandFailed, paint, print } from "./output.ts";
import { openOwnSigning } from "./own-signing.ts";
import { proposedInstead } from "./proposed.ts";

interface Options {
  readonly account?: string;
  readonly strategy?: string;
  readonly yes?: boolean;
}

/** Runs only where the master key is: no API route can widen where a credential may be sent. */
export function addRebind(credentials: Command, composition: Composition): void {
  credentials
    .command("rebind")
    .description(
      "allow credentials to be sent to the origins that their strategy names now; needs the master key; audited",
    )
    .argument("[id]", "its id (cred_…); without it: all credentials of --account and --strategy")
    .option("--account <name>", "with --strategy: the account")
    .option("--strategy <id>", "all credentials of a strategy")
    .option(
      "--yes",
      "apply the change, or propose it where two admins must agree; without it, the change is only shown",
    )
    .addHelpText(
      "after",
      "\nExamples:\n  latchkey credentials rebind cred_0VrJ…\n  latchkey credentials rebind --account acme --strategy strat_portal --yes",
    )
    .action(async (id: string | undefined, options: Options) => await rebind(composition, id, options));
}

async function rebind(composition: Composition, id: string | undefined, options: Options): Promise<void> {
  const { isBoundSo, planRebinding, proposedOf, rebindCredential } =
    await import("#actions/credentials/rebind-credentials.ts");
  const { permitRebinding } = await import("#actions/credentials/permit-rebinding.ts");
  const { requireAccount } = await import("#actions/operator-error.ts");
  const signing = openOwnSigning(composition);
  const { account, strategy } = options;
  if ((id === undefined) === (account === undefined || strategy === undefined))
    throw new CommandFailed("Name one credential by its id, or a strategy by --account and --strategy.");
  await composition.withDatabase(async (db) => {
    const services = { db, vault: await composition.openVault(db), signing };
    const choice: RebindChoice =
      id !== undefined
        ? { id }
        : { accountId: (await requireAccount(db, account ?? "")).id, strategyId: strategy ?? "" };
    const plans = await planRebinding(services, choice);
    if (plans.length === 0)
      throw new CommandFailed("There is no such credential. `latchkey credentials list` shows the ids.");
    const changes = plans.filter((plan): plan is Rebinding => !("broken" in plan) && !isBoundSo(plan));
    for (const plan of plans) if (!changes.some((change) => change.id === plan.id)) print(describeKept(plan));
    const [first] = changes;
    if (first === undefined) return print("Nothing to do.");
    const what = changes.length === 1 ? "One credential" : `${changes.length} credentials`;
    if (options.yes !== true) {
      for (const change of changes) print(describe(change));
      throw new CommandFailed(
        `${what} would be rebound; nothing was changed. Each origin with a \`+\` will receive the values that the end user entered for the ` +
          "others. Add --yes to apply it, or, where the account requires a second admin, to propose it.",
      );
    }
    const credentials = changes.map(proposedOf);
    const permit = await permitRebinding(services, { accountId: first.accountId, credentials });
    if (!permit.permitted) throw proposedInstead(composition.config().publicUrl ?? "", permit);
    for (const rebinding of changes) {
      const agreed = { rebinding, proposalId: permit.proposalId };
      print(describe((await rebindCredential(services, rebinding.id, agreed)) ?? rebinding));
    }
    print(`${what} rebound.`);
  });
}

const describeKept = (plan: RebindPlan): string =>
  "broken" in plan
    ? paint("red", `${plan.id}  can't be opened; \`latchkey doctor\` lists such rows`)
    : paint("dim", `${plan.id}  may already reach every origin of its strategy`);

function describe({ id, before, after }: Rebinding): string {
  const was = before ?? [];
  return [
    id + (before === null ? "  (has no origins yet)" : ""),
    ...after.filter((origin) => !was.includes(origin)).map((origin) => paint("green", `      + ${origin}`)),
    ...was.filter((origin) => !after.includes(origin)).map((origin) => paint("red", `      - ${origin}`)),
  ].join("\n");
}
