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
import { CommandFailed, outliveClosedPipes, tell, USAGE } from "./output.ts";
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

/** Exit codes, stable for scripts: 0 done, 1 failed, 2 usage; `plan` has 3, there are changes; 4, a change waits for admins. */
const FAILED = 1;

/** Runs one command line and gives its exit code. Never asks anything: every command works without a terminal. */
export async function runProgram(composition: Composition, arguments_: readonly string[]): Promise<number> {
  outliveClosedPipes();
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
  try {
    await program.parseAsync([...arguments_], { from: "user" });
    return 0;
  } catch (error) {
    return await explain(error);
  }
}

async function explain(error: unknown): Promise<number> {
  if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : USAGE;
  const { name, code, message } = error as NodeJS.ErrnoException;
  const remedy = REMEDIES.get(code ?? "")?.(error as ListenError);
  if (error instanceof ExplainedError) tell(message);
  else if (remedy !== undefined) tell(remedy);
  // A plain Error without a code is one of ours too: the supervisor of the embedded PostgreSQL, the migrations.
  else if (name === "Error" && code === undefined) tell(`latchkey: ${message}`);
  else {
    const { describeError } = await import("#lib/log.ts");
    tell(`latchkey: ${message ?? "an unexpected error"} (${JSON.stringify(describeError(error))})`);
  }
  return error instanceof CommandFailed ? error.exitCode : FAILED;
}

/** By the codes that listening fails with. */
const REMEDIES: ReadonlyMap<string, (error: ListenError) => string> = new Map([
  [
    "EADDRINUSE",
    ({ address = "", port }: ListenError) =>
      `${port === undefined ? "The port" : `${address.includes(":") ? `[${address}]` : address}:${port}`} is taken. Choose another with ` +
      "LATCHKEY_PORT (0: any free one), or stop what listens there. A process with the worker role alone listens, too.",
  ],
  [
    "EADDRNOTAVAIL",
    () =>
      "LATCHKEY_HOST is no address of this machine. Take one of its own, 127.0.0.1, or 0.0.0.0 for all of them.",
  ],
  ["ENOTFOUND", () => "LATCHKEY_HOST is a name that can't be resolved. Take an address of this machine."],
]);

interface ListenError {
  readonly address?: string;
  readonly port?: number;
}
