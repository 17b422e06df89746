import { InvalidArgumentError, type Command } from "commander";
import { parseDuration } from "#domain/duration.ts";
import { KEY_STATE_NAMES as names } from "#domain/labels/states.ts";
import { limits } from "#domain/limits.ts";
import { OPERATOR_ROLES, type OperatorRole } from "#domain/operator.ts";
import type { Composition } from "./composition.ts";
import { asShell, readAccounts, readRole } from "./operators.ts";
import { print, printItems, table, tell } from "./output.ts";
import { openOwnSigning } from "./own-signing.ts";
import { minute } from "./pages.ts";

/** Tokens with which programs use the operator API. */
export function addTokens(program: Command, composition: Composition): void {
  const tokens = program
    .command("tokens")
    .description("create, list and revoke operator tokens: for CI, and the command line of other machines")
    .addHelpText(
      "after",
      "\nExamples:\n  latchkey tokens create --role operator --name ci --expires 90d\n  latchkey tokens list",
    );
  tokens
    .command("create")
    .description("create an operator token; it is shown once")
    .requiredOption("--role <role>", `one of ${OPERATOR_ROLES.join(", ")}`, readRole)
    .requiredOption("--name <label>", "a label for people", readName)
    .requiredOption("--expires <duration>", "for example 90d, at most 365d", readLifetime)
    .option("--account <names>", "only these accounts, separated by commas (default: all)", readAccounts)
    .option("--json", 'print one line {"id", "token", "expiresAt"}')
    .addHelpText(
      "after",
      "\nThe token has its role's permissions without a second factor, but can't manage operators and tokens, or confirm proposals.\n" +
        "\nExample:\n  latchkey tokens create --role operator --name ci --expires 90d",
    )
    .action(async (options: CreateOptions) => await create(composition, options));
  tokens
    .command("list")
    .description("list operator tokens; the tokens themselves are never stored")
    .option("--json", "print the list as JSON")
    .addHelpText("after", "\nExample:\n  latchkey tokens list")
    .action(async (options: { json?: boolean }) => await list(composition, options));
  tokens
    .command("revoke")
    .description("revoke an operator token immediately")
    .argument("<id>", "its id (tok_…), as `tokens list` shows it")
    .addHelpText("after", "\nExample:\n  latchkey tokens revoke tok_0VrJ…")
    .action(async (id: string) => {
      const { revokeTokenById } = await import("#actions/operators/manage-tokens.ts");
      await composition.withDatabase(async (db) => await revokeTokenById(asShell(composition, db), id));
      print(`Revoked ${id}.`);
    });
}

interface CreateOptions {
  account?: string[];
  role: OperatorRole;
  name: string;
  /** Milliseconds. */
  expires: number;
  json?: boolean;
}

const LIFETIME_MS_MIN = 60_000;

function readLifetime(text: string): number {
  const lifetimeMs = parseDuration(text);
  if (lifetimeMs === undefined || lifetimeMs < LIFETIME_MS_MIN || lifetimeMs > limits.operatorTokenMsMax)
    throw new InvalidArgumentError("It must be a duration such as 12h or 90d, from 1m to 365d.");
  return lifetimeMs;
}

const NAME_CHARACTERS_MAX = 255;

function readName(text: string): string {
  if (text.trim() === "" || text.length > NAME_CHARACTERS_MAX)
    throw new InvalidArgumentError(`It must have 1 to ${NAME_CHARACTERS_MAX} characters.`);
  return text;
}

async function create(composition: Composition, { json, ...options }: CreateOptions): Promise<void> {
  const [{ checkSigningKey }, { createOperatorToken }] = await Promise.all([
    import("#actions/keys/check-signing-key.ts"),
    import("#actions/operators/manage-tokens.ts"),
  ]);
  const signing = openOwnSigning(composition);
  const made = await composition.withDatabase(async (db) => {
    await checkSigningKey(db, signing);
    const context = { db, signing, actor: { kind: "cli" } } as const;
    const { expires: lifetimeMs, account: accounts = null, ...request } = options;
    return await createOperatorToken(context, { ...request, lifetimeMs, accounts });
  });
  if (json) return print(JSON.stringify(made));
  tell(
    `Operator token ${made.id} (${options.role}) works until ${made.expiresAt.toISOString()}. ` +
      "It is shown only once; keep it where you keep secrets:",
  );
  print(made.token);
}

async function list(composition: Composition, { json }: { json?: boolean }): Promise<void> {
  const { listTokens } = await import("#actions/operators/manage-tokens.ts");
  const tokens = await composition.withDatabase(async (db) => await listTokens(db));
  if (json) return printItems(tokens);
  if (tokens.length === 0)
    return print(
      "There are no operator tokens yet. Create one: latchkey tokens create --role operator --name ci --expires 90d",
    );
  print(
    table(
      ["ID", "NAME", "ROLE", "ACCOUNTS", "STATE", "CREATED", "BY", "LAST USED"],
      tokens.map((token) => [
        token.id,
        token.name,
        token.role,
        token.accounts?.join(",") ?? "all",
        stateOf(token),
        minute(token.created_at),
        token.created_by ?? "command line",
        token.last_used_at === null ? "never" : minute(token.last_used_at),
      ]),
    ),
  );
}

function stateOf(token: {
  readonly revoked_at: string | null;
  readonly is_expired: boolean;
  readonly expires_at: string;
}): string {
  if (token.revoked_at !== null) return names.revoked;
  return token.is_expired ? names.expired : `${names.expiring} ${token.expires_at.slice(0, 10)}`;
}
