import { InvalidArgumentError, type Command } from "commander";
import type { Composition } from "./composition.ts";
import { print, tell } from "./output.ts";

type Role = "api" | "worker";

export function addServe(program: Command, composition: Composition): void {
  program
    .command("serve")
    .description("run the service until SIGTERM or Ctrl-C")
    .option("--roles <list>", "api, worker or both, separated by commas", readRoles, ["api", "worker"] as Role[])
    .addHelpText("after", "\nExample:\n  latchkey serve\n  latchkey serve --roles api")
    .action(async (options: { roles: Role[] }) => {
      const service = await composition.serve(options.roles);
      print(`Latchkey listens at ${service.url} (${options.roles.join(", ")})`);
      await untilTold();
      tell("Stopping: requests under way end, runs under way are handed back …");
      // Whatever a drain may hang on, the process ends: its runs go on elsewhere, from their journal.
      setTimeout(() => process.exit(0), composition.drainMs() + 2_000).unref();
      await service.stop();
    });
}

function readRoles(text: string): Role[] {
  const roles = text.split(",").map((role) => role.trim());
  if (roles.some((role) => role !== "api" && role !== "worker")) throw new InvalidArgumentError("Roles are api and worker.");
  return [...new Set(roles)] as Role[];
}

/** Resolves at the first SIGTERM or SIGINT; a second one ends the process at once. */
export async function untilTold(): Promise<void> {
  await new Promise<void>((resolve) => {
    for (const signal of ["SIGTERM", "SIGINT"] as const) {
      process.on(signal, () => {
        process.on(signal, () => process.exit(130));
        resolve();
      });
    }
  });
}
