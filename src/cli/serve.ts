import { InvalidArgumentError, type Command } from "commander";
import type { Composition } from "./composition.ts";
import { CommandFailed, EXIT_CODES, print } from "./output.ts";
import { stopSignal } from "./stop-signal.ts";

type Role = "api" | "worker";

/** Time between the end of the drain and the forced end of the process, in case a part hangs. */
const LEEWAY_MS = 2_000;

/** More than a machine has cores are of no use. */
const PROCESSES_MAX = 128;

export function addServe(program: Command, composition: Composition): void {
  program
    .command("serve")
    .description("run the service until SIGTERM or Ctrl-C")
    .option("--roles <list>", "api, worker or both, separated by commas", readRoles, [
      "api",
      "worker",
    ] as Role[])
    .option("--processes <number>", "processes of the api role, which share the port", readProcesses, 1)
    .addHelpText("after", "\nExample:\n  latchkey serve\n  latchkey serve --roles api --processes 4")
    .action(async (options: ServeOptions) => await serve(composition, options));
}

interface ServeOptions {
  readonly roles: readonly Role[];
  readonly processes: number;
}

async function serve(composition: Composition, { roles, processes }: ServeOptions): Promise<void> {
  if (processes > 1 && !roles.includes("api"))
    throw new CommandFailed(
      "--processes is for the api role. One worker process executes many runs; start `latchkey serve --roles worker` again for more.",
      EXIT_CODES.usage,
    );
  // Handled from the beginning: a signal during the start stops the service as soon as it has started.
  const interrupt = stopSignal(["SIGTERM", "SIGINT"]);
  const [drainMs, log] = [composition.drainMs(), await composition.log()];
  const own = await composition.loadNodeTypes();
  if (own.size > 0) log.info({ types: [...own.values()] }, "node types of this installation");
  const service = await composition.serve(roles, processes);
  print(`Latchkey listens at ${service.url} (${roles.join(", ")})`);
  if (service.localUrl !== service.url) print(`On this machine it listens at ${service.localUrl}`);
  if (roles.includes("api")) print(`The dashboard is at ${service.url}/dashboard`);
  const lost = await Promise.race([interrupt.come.then(() => null), service.lost]);
  if (lost === null) log.info("stopping: requests in progress are completed, runs are handed back");
  else log.error(`stopping, because the service can't continue: ${lost.message}`);
  // The process ends anyway; its runs continue elsewhere from their journals.
  const limit = setTimeout(() => process.exit(lost === null ? 0 : 1), drainMs + LEEWAY_MS);
  await service.stop();
  log.info("stopped");
  if (lost !== null) throw new CommandFailed("The embedded PostgreSQL could not be started again.");
  // The process now ends by itself, unless a part has left a handle open; then the time limit applies.
  limit.unref();
}

function readProcesses(text: string): number {
  const processes = Number(text);
  if (!Number.isInteger(processes) || processes < 1 || processes > PROCESSES_MAX)
    throw new InvalidArgumentError(`It is a whole number from 1 to ${PROCESSES_MAX}.`);
  return processes;
}

function readRoles(text: string): Role[] {
  const roles = text.split(",").map((role) => role.trim());
  if (roles.some((role) => role !== "api" && role !== "worker"))
    throw new InvalidArgumentError("Roles are api and worker.");
  return [...new Set(roles)] as Role[];
}
