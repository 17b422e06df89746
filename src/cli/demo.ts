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
      const environment = composition.foreignEnvironment();
      await runDemo(environment, {
        name,
        once: options.once === true,
        whyNoBrowser: async () => await whyNoBrowser(environment["LATCHKEY_BROWSER"]),
      });
    });
}

/** Why this machine has no browser, with the remedy; null: it has one. */
async function whyNoBrowser(named: string | undefined): Promise<string | null> {
  const [{ findChromium, NO_CHROMIUM }, { BrowserError }] = await Promise.all([
    import("#outbound/browser/find-chromium.ts"),
    import("#outbound/browser/browser-error.ts"),
  ]);
  try {
    return (await findChromium(named?.trim() || null)) === null ? NO_CHROMIUM : null;
  } catch (error) {
    if (error instanceof BrowserError) return error.message;
    throw error;
  }
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
