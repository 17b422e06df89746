import { Command, CommanderError } from "commander";
import { ExplainedError } from "#lib/explained-error.ts";
import type { Composition } from "./composition.ts";
import { CommandFailed, EXIT_CODES, outliveClosedPipes, tell } from "./output.ts";
import { LATCHKEY_VERSION } from "#lib/version.ts";

/** Runs one command line and returns its exit code. It never prompts: every command works without a terminal. */
export async function runProgram(composition: Composition, arguments_: readonly string[]): Promise<number> {
  outliveClosedPipes();
  try {
    const program = await buildProgram(composition, arguments_[0]);
    await program.parseAsync([...arguments_], { from: "user" });
    return EXIT_CODES.done;
  } catch (error) {
    return await explain(error);
  }
}

type AddCommand = (program: Command, composition: Composition) => void;

/** Every command, in the order of the help. Each has its own modules, which the others need not wait for. */
const COMMANDS: readonly (readonly [name: string, load: () => Promise<AddCommand>])[] = [
  ["login", async () => (await import("./login.ts")).addLogin],
  ["logout", async () => (await import("./login.ts")).addLogout],
  ["init", async () => (await import("./init.ts")).addInit],
  ["serve", async () => (await import("./serve.ts")).addServe],
  ["migrate", async () => (await import("./migrate.ts")).addMigrate],
  ["apply", async () => (await import("./apply.ts")).addApply],
  ["plan", async () => (await import("./apply.ts")).addPlan],
  ["validate", async () => (await import("./apply.ts")).addValidate],
  ["export", async () => (await import("./export.ts")).addExport],
  ["schema", async () => (await import("./export.ts")).addSchema],
  ["new", async () => (await import("./new.ts")).addNew],
  ["record", async () => (await import("./record.ts")).addRecord],
  ["run", async () => (await import("./run.ts")).addRun],
  ["keys", async () => (await import("./keys.ts")).addKeys],
  ["operators", async () => (await import("./operators.ts")).addOperators],
  ["tokens", async () => (await import("./tokens.ts")).addTokens],
  ["proposals", async () => (await import("./proposals.ts")).addProposals],
  ["reviews", async () => (await import("./reviews.ts")).addReviews],
  ["credentials", async () => (await import("./credentials.ts")).addCredentials],
  ["secrets", async () => (await import("./secrets.ts")).addSecrets],
  ["webhooks", async () => (await import("./webhooks.ts")).addWebhooks],
  ["schedules", async () => (await import("./schedules.ts")).addSchedules],
  ["runs", async () => (await import("./runs.ts")).addRuns],
  ["sessions", async () => (await import("./sessions.ts")).addSessions],
  ["blueprints", async () => (await import("./blueprints.ts")).addBlueprints],
  ["audit", async () => (await import("./audit.ts")).addAudit],
  ["backup", async () => (await import("./backup.ts")).addBackup],
  ["restore", async () => (await import("./restore.ts")).addRestore],
  ["restore-reconcile", async () => (await import("./restore-reconcile.ts")).addRestoreReconcile],
  ["store", async () => (await import("./store.ts")).addStore],
  ["master-key", async () => (await import("./master-key.ts")).addMasterKeyCommands],
  ["doctor", async () => (await import("./doctor.ts")).addDoctor],
  ["demo", async () => (await import("./demo.ts")).addDemo],
];

/** Builds the command `only` with its options; all of them if there is none of this name. Nothing is opened yet. */
export async function buildProgram(composition: Composition, only = ""): Promise<Command> {
  const program = new Command("latchkey")
    .description("Connect your users' third-party accounts and run Blueprints against them.")
    .version(LATCHKEY_VERSION)
    .exitOverride()
    .showHelpAfterError("(add --help for usage)")
    .option("--url <url>", "work on the service at this URL, by `latchkey login` or LATCHKEY_TOKEN")
    .hook("preAction", (self, command) => chooseService(self, command, composition))
    .addHelpText(
      "after",
      "\nStart here:\n  latchkey init\n  latchkey serve\n\nSettings come from the environment: docs/configuration.md.",
    );
  const isKnown = COMMANDS.some(([name]) => name === only);
  for (const [name, load] of COMMANDS) {
    if (isKnown && name !== only) continue;
    const add = await load();
    add(program, composition);
  }
  for (const command of program.commands)
    command.exitOverride().commands.forEach((sub) => sub.exitOverride());
  return program;
}

/** Commands that use nothing of an installation, or make one of their own. */
const NEED_NOTHING: readonly string[] = ["validate", "schema", "new", "record", "run", "demo"];

/** Commands that choose the service themselves. */
const SIGN_IN: readonly string[] = ["login", "logout"];

/** Commands that work on the service of another machine as they do on this one's. */
export const REMOTE_COMMANDS: ReadonlySet<string> = new Set([
  ...["apply", "plan", "export"],
  ...["list", "show", "watch", "results", "again", "purge", "cancel"].map((name) => `runs ${name}`),
  ...["list", "show", "approve", "reject", "writes", "decide", "write"].map((name) => `reviews ${name}`),
  ...["list", "unlock", "test-login", "delete"].map((name) => `credentials ${name}`),
  ...["create", "list", "rotate", "revoke"].map((name) => `keys ${name}`),
  ...["create", "list", "show", "deliveries", "delivery", "rotate", "disable", "enable", "delete"].map(
    (name) => `webhooks ${name}`,
  ),
  ...["resend", "ping", "trigger", "listen"].map((name) => `webhooks ${name}`),
  ...["list", "show", "pause", "resume", "run"].map((name) => `schedules ${name}`),
]);

function chooseService(program: Command, command: Command, composition: Composition): void {
  const { url } = program.opts<{ url?: string }>();
  const words: string[] = [];
  for (let each: Command | null = command; each !== null && each !== program; each = each.parent)
    words.unshift(each.name());
  if (NEED_NOTHING.includes(words[0] ?? "")) return;
  if (url !== undefined) composition.useService(url);
  if (SIGN_IN.includes(words[0] ?? "")) return;
  const isForBoth = REMOTE_COMMANDS.has(words.join(" "));
  if (isForBoth) composition.useLogin();
  if (!composition.isRemote() || isForBoth) return;
  throw new CommandFailed(
    `\`latchkey ${words.join(" ")}\` works only on the machine of the installation, with its database and keys. ` +
      "Run it there, without LATCHKEY_TOKEN and --url.",
    EXIT_CODES.usage,
  );
}

async function explain(error: unknown): Promise<number> {
  if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT_CODES.done : EXIT_CODES.usage;
  const { name, code, message } = error as NodeJS.ErrnoException;
  const remedy = REMEDIES.get(code ?? "")?.(error as ListenError);
  if (error instanceof ExplainedError) tell(message);
  else if (remedy !== undefined) tell(remedy);
  // Plain Errors without a code are ours as well: from the embedded PostgreSQL's supervisor and the migrations.
  else if (name === "Error" && code === undefined) tell(`latchkey: ${message}`);
  else {
    const { describeError } = await import("#lib/log.ts");
    tell(`latchkey: ${message ?? "an unexpected error"} (${JSON.stringify(describeError(error))})`);
  }
  return error instanceof CommandFailed ? error.exitCode : EXIT_CODES.failed;
}

/** By the error code of a failed listen. */
const REMEDIES: ReadonlyMap<string, (error: ListenError) => string> = new Map([
  [
    "EADDRINUSE",
    ({ address = "", port }: ListenError) =>
      `${port === undefined ? "The port" : `${address.includes(":") ? `[${address}]` : address}:${port}`} is taken. Choose another with ` +
      "LATCHKEY_PORT (0: any free one), or stop the process that listens there. A worker process listens on a port, too.",
  ],
  [
    "EADDRNOTAVAIL",
    () =>
      "LATCHKEY_HOST is not an address of this machine. Use one of its addresses, 127.0.0.1, or 0.0.0.0 for all of them.",
  ],
  ["ENOTFOUND", () => "LATCHKEY_HOST can't be resolved. Use an address of this machine."],
]);

interface ListenError {
  readonly address?: string;
  readonly port?: number;
}
