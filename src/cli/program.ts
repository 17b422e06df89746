import { Command, CommanderError } from "commander";
import { addApply, addPlan, addValidate } from "./apply.ts";
import { ExplainedError } from "#lib/explained-error.ts";
import { addAudit } from "./audit.ts";
import { addBlueprints } from "./blueprints.ts";
import type { Composition } from "./composition.ts";
import { addCredentials } from "./credentials.ts";
import { addDemo } from "./demo.ts";
import { addDoctor } from "./doctor.ts";
import { addExport, addSchema } from "./export.ts";
import { addInit } from "./init.ts";
import { addKeys } from "./keys.ts";
import { addMasterKeyCommands } from "./master-key.ts";
import { addMigrate } from "./migrate.ts";
import { addNew } from "./new.ts";
import { addOperators } from "./operators.ts";
import { CommandFailed, EXIT_CODES, outliveClosedPipes, tell } from "./output.ts";
import { addProposals } from "./proposals.ts";
import { addRestoreReconcile } from "./restore-reconcile.ts";
import { addReviews } from "./reviews.ts";
import { addRun } from "./run.ts";
import { addRuns } from "./runs.ts";
import { addSecrets } from "./secrets.ts";
import { addServe } from "./serve.ts";
import { addSessions } from "./sessions.ts";
import { addStore } from "./store.ts";
import { LATCHKEY_VERSION } from "#lib/version.ts";

/** Runs one command line and returns its exit code. It never prompts: every command works without a terminal. */
export async function runProgram(composition: Composition, arguments_: readonly string[]): Promise<number> {
  outliveClosedPipes();
  try {
    await buildProgram(composition).parseAsync([...arguments_], { from: "user" });
    return EXIT_CODES.done;
  } catch (error) {
    return await explain(error);
  }
}

/** Builds every command with its options. Nothing is opened yet. */
export function buildProgram(composition: Composition): Command {
  const program = new Command("latchkey")
    .description("Connect your users' third-party accounts and run Blueprints against them.")
    .version(LATCHKEY_VERSION)
    .exitOverride()
    .showHelpAfterError("(add --help for usage)")
    .addHelpText(
      "after",
      "\nStart here:\n  latchkey init\n  latchkey serve\n\nSettings come from the environment: docs/configuration.md.",
    );
  addInit(program, composition);
  addServe(program, composition);
  addMigrate(program, composition);
  addApply(program, composition);
  addPlan(program, composition);
  addValidate(program, composition);
  addExport(program, composition);
  addSchema(program, composition);
  addNew(program);
  addRun(program, composition);
  addKeys(program, composition);
  addOperators(program, composition);
  addProposals(program, composition);
  addReviews(program, composition);
  addCredentials(program, composition);
  addSecrets(program, composition);
  addRuns(program, composition);
  addSessions(program, composition);
  addBlueprints(program, composition);
  addAudit(program, composition);
  addRestoreReconcile(program, composition);
  addStore(program, composition);
  addMasterKeyCommands(program, composition);
  addDoctor(program, composition);
  addDemo(program, composition);
  for (const command of program.commands)
    command.exitOverride().commands.forEach((sub) => sub.exitOverride());
  return program;
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
