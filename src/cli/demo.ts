import type { Command } from "commander";
import type { Composition } from "./composition.ts";
import { print, table } from "./output.ts";

export function addDemo(program: Command, composition: Composition): void {
  program
    .command("demo")
    .description("show the whole flow: a supplier portal, a collected login, a run, its results")
    .argument("[name]", "an example to run instead, as --list shows them, or `all`")
    .option("--once", "exit after printing instead of running until Ctrl-C")
    .option("--list", "list the examples")
    .addHelpText(
      "after",
      "\nExample:\n  npm run demo\n  npm run demo -- --once\n  npm run demo -- purchase-orders",
    )
    .action(async (name: string | undefined, options: { once?: boolean; list?: boolean }) => {
      if (options.list === true) return await list();
      const { runDemo } = await import("#examples/demo/run-demo.ts");
      await runDemo(composition.foreignEnvironment(), { name, once: options.once === true });
    });
}

async function list(): Promise<void> {
  const { EXAMPLES } = await import("#examples/demo/examples.ts");
  print(
    table(
      ["NAME", "SHOWS"],
      EXAMPLES.map(({ name, shows }) => [name, shows]),
    ),
  );
}
