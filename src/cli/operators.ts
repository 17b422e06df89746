import { InvalidArgumentError, type Command } from "commander";
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
  addChange(operators, composition, "disable", "end an operator's sessions and refuse their sign-ins");
  addChange(operators, composition, "enable", "let an operator sign in again");
  addChange(operators, composition, "reset-password", "give an operator a new password; it is shown once");
  addChange(operators, composition, "reset-totp", "reset a lost second factor");
  addChange(operators, composition, "unlink", "remove an operator's link to the single sign-on provider");
}

const ROLES = OPERATOR_ROLES.map((role) => `  ${role}: ${ROLE_TEXTS[role]}`).join("\n");

interface CreateOptions {
  role: OperatorRole;
  json?: boolean;
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

async function create(composition: Composition, email: string, { role, json }: CreateOptions): Promise<void> {
  const { createOperator } = await import("#actions/operators/manage-operators.ts");
  const made = await composition.withDatabase(
    async (db) => await createOperator(asShell(composition, db), { email, role }),
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
      ["ID", "EMAIL", "ROLE", "SECOND FACTOR", "SINGLE SIGN-ON", "CREATED", "DISABLED"],
      operators.map((each) => [
        each.id,
        each.email,
        each.role,
        each.has_second_factor ? "yes" : "no",
        each.single_sign_on_since ?? "",
        each.created_at,
        each.disabled_at ?? "",
      ]),
    ),
  );
}

async function change(composition: Composition, name: Change, operator: string): Promise<void> {
  const [manage, { listAllOperators }] = await Promise.all([
    import("#actions/operators/manage-operators.ts"),
    import("#actions/operators/list-operators.ts"),
  ]);
  await composition.withDatabase(async (db) => {
    const wanted = normaliseOperatorName(operator);
    const found = (await listAllOperators(db)).find(({ id, email }) => id === operator || email === wanted);
    if (!found)
      throw new CommandFailed(`There is no operator ${operator}. \`latchkey operators list\` shows them.`);
    const context = asShell(composition, db);
    if (name === "disable") await manage.disableOperator(context, found.id);
    if (name === "enable") await manage.enableOperator(context, found.id);
    if (name === "unlink") await manage.unlinkOperator(context, found.id);
    if (name === "reset-totp") await manage.resetSecondFactor(context, found.id);
    if (name !== "reset-password") return tell(`${found.email}: done.`);
    const password = await manage.resetPassword(context, found.id);
    tell(
      `${found.email} has a new password, shown only once; it is valid for 7 days and must be changed at the next sign-in:`,
    );
    print(password);
  });
}
