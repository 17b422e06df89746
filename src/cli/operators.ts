import { InvalidArgumentError, Option, type Command } from "commander";
import type { ManageContext } from "#actions/operators/manage-operators.ts";
import {
  isOperatorRole,
  normaliseOperatorName,
  OPERATOR_ROLES,
  type OperatorRole,
} from "#domain/operator.ts";
import { ROLE_TEXTS } from "#domain/labels/roles.ts";
import type { Composition } from "./composition.ts";
import { CommandFailed, print, printItems, table, tell } from "./output.ts";
import { openOwnSigning } from "./own-signing.ts";

/** The people who sign in to the dashboard. Someone with a shell can reset what an operator has lost. */
export function addOperators(program: Command, composition: Composition): void {
  const operators = program
    .command("operators")
    .description("create, list, disable and enable operators, and reset their sign-in")
    .addHelpText(
      "after",
      "\nExamples:\n  latchkey operators create ana@example.com --role reviewer\n  latchkey operators reset-totp ana@example.com",
    );
  operators
    .command("create")
    .description("create an operator; the password is shown once")
    .argument("<email>", "the email to sign in with")
    .requiredOption("--role <role>", `one of ${OPERATOR_ROLES.join(", ")}`, readRole)
    .option("--account <names>", "only these accounts, separated by commas (default: all)", readAccounts)
    .option("--json", 'print one line {"id", "email", "password"}')
    .addHelpText(
      "after",
      `\nRoles:\n${ROLES}\n\nExample:\n  latchkey operators create ana@example.com --role reviewer`,
    )
    .action(async (email: string, options: CreateOptions) => await create(composition, email, options));
  operators
    .command("list")
    .description("list operators")
    .option("--json", "print the list as JSON")
    .addHelpText("after", "\nExample:\n  latchkey operators list")
    .action(async (options: { json?: boolean }) => await list(composition, options));
  addLimit(operators, composition);
  addChange(operators, composition, "disable", "end an operator's sessions and refuse their sign-ins");
  addChange(operators, composition, "enable", "let an operator sign in again");
  addChange(operators, composition, "reset-password", "give an operator a new password; it is shown once");
  addChange(operators, composition, "reset-totp", "reset a lost second factor");
  addChange(operators, composition, "unlink", "remove an operator's link to the single sign-on provider");
}

const ROLES = OPERATOR_ROLES.map((role) => `  ${role}: ${ROLE_TEXTS[role]}`).join("\n");

interface CreateOptions {
  role: OperatorRole;
  account?: string[];
  json?: boolean;
}

function addLimit(operators: Command, composition: Composition): void {
  operators
    .command("limit")
    .description("limit an operator to accounts, or to none; their sessions end")
    .argument("<operator>", "the email or the id (op_…), as `operators list` shows them")
    .addOption(
      new Option("--account <names>", "only these accounts, separated by commas")
        .argParser(readAccounts)
        .conflicts("all"),
    )
    .option("--all", "all accounts, also later ones")
    .addHelpText(
      "after",
      "\nExamples:\n  latchkey operators limit ana@example.com --account acme,globex\n  latchkey operators limit ana@example.com --all",
    )
    .action(async (operator: string, options: { account?: string[]; all?: boolean }) => {
      if (options.account === undefined && options.all !== true)
        throw new CommandFailed("Name accounts with --account, or use --all.");
      const { limitOperatorTo } = await import("#actions/operators/manage-operators.ts");
      await onOperator(composition, operator, async (context, { id, email }) => {
        await limitOperatorTo(context, id, options.account ?? null);
        tell(`${email}: limited to ${options.account?.join(", ") ?? "no accounts any more"}.`);
      });
    });
}

type Change = "disable" | "enable" | "reset-password" | "reset-totp" | "unlink";

function addChange(operators: Command, composition: Composition, name: Change, description: string): void {
  operators
    .command(name)
    .description(description)
    .argument("<operator>", "the email or the id (op_…), as `operators list` shows them")
    .addHelpText("after", `\nExample:\n  latchkey operators ${name} ana@example.com`)
    .action(async (operator: string) => await change(composition, name, operator));
}

/** Names of accounts, separated by commas. */
export function readAccounts(text: string): string[] {
  const names = text.split(",").map((name) => name.trim());
  // A script's empty variable must not mean all accounts.
  if (names.some((name) => name === ""))
    throw new InvalidArgumentError("Name accounts, or omit the option to allow all of them.");
  return names;
}

export function readRole(text: string): OperatorRole {
  if (isOperatorRole(text)) return text;
  throw new InvalidArgumentError(`It must be one of ${OPERATOR_ROLES.join(", ")}.`);
}

/** The actor is the command line. */
export const asShell = (composition: Composition, db: ManageContext["db"]): ManageContext => ({
  db,
  signing: openOwnSigning(composition),
  actor: { kind: "cli" },
});

async function create(
  composition: Composition,
  email: string,
  { role, account: accounts = null, json }: Omit<CreateOptions, "account"> & { account?: string[] | null },
): Promise<void> {
  const { createOperator } = await import("#actions/operators/manage-operators.ts");
  const made = await composition.withDatabase(
    async (db) => await createOperator(asShell(composition, db), { email, role, accounts }),
  );
  if (json) return print(JSON.stringify(made));
  tell(
    `Created the operator ${made.email} (${role}). The password is shown only once, is valid for 7 days, and must be changed at the first sign-in:`,
  );
  print(made.password);
}

async function list(composition: Composition, options: { json?: boolean }): Promise<void> {
  const { listAllOperators } = await import("#actions/operators/list-operators.ts");
  const operators = await composition.withDatabase(async (db) => await listAllOperators(db));
  if (options.json) return printItems(operators);
  print(
    table(
      ["ID", "EMAIL", "ROLE", "ACCOUNTS", "SECOND FACTOR", "SINGLE SIGN-ON", "CREATED", "DISABLED"],
      operators.map((each) => [
        each.id,
        each.email,
        each.role,
        each.accounts?.join(",") ?? "all",
        each.has_second_factor ? "yes" : "no",
        each.single_sign_on_since ?? "",
        each.created_at,
        each.disabled_at ?? "",
      ]),
    ),
  );
}

async function change(composition: Composition, name: Change, operator: string): Promise<void> {
  const manage = await import("#actions/operators/manage-operators.ts");
  await onOperator(composition, operator, async (context, { id, email }) => {
    if (name === "disable") await manage.disableOperator(context, id);
    if (name === "enable") await manage.enableOperator(context, id);
    if (name === "unlink") await manage.unlinkOperator(context, id);
    if (name === "reset-totp") await manage.resetSecondFactor(context, id);
    if (name !== "reset-password") return tell(`${email}: done.`);
    const password = await manage.resetPassword(context, id);
    tell(
      `${email} has a new password, shown only once; it is valid for 7 days and must be changed at the next sign-in:`,
    );
    print(password);
  });
}

/** The operator with this email or id. Throws CommandFailed. */
async function onOperator(
  composition: Composition,
  operator: string,
  work: (context: ManageContext, found: { readonly id: string; readonly email: string }) => Promise<void>,
): Promise<void> {
  const { listAllOperators } = await import("#actions/operators/list-operators.ts");
  await composition.withDatabase(async (db) => {
    const wanted = normaliseOperatorName(operator);
    const found = (await listAllOperators(db)).find(({ id, email }) => id === operator || email === wanted);
    if (!found)
      throw new CommandFailed(`There is no operator ${operator}. \`latchkey operators list\` shows them.`);
    await work(asShell(composition, db), found);
  });
}
