import type { Command } from "commander";
import type { Composition } from "./composition.ts";

export function addDemo(program: Command, composition: Composition): void {
  program
    .command("demo")
    .description("show the whole flow: a supplier portal, a login collected and vaulted, a run, its results")
    .option("--once", "end after printing, instead of staying up until Ctrl-C")
    .addHelpText("after", "\nExample:\n  npm run demo\n  npm run demo -- --once")
    .action(async (options: { once?: boolean }) => {
      const { runDemo } = await import("./demo/run-demo.ts");
      await runDemo(composition.root, composition.foreignEnvironment(), options.once === true);
    });
}
