import { mkdirSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { Option, type Command } from "commander";
import { formatProblem } from "#domain/config-problem.ts";
import { blueprintTemplate, SOURCES } from "./blueprint-template.ts";
import { CommandFailed, EXIT_CODES, print } from "./output.ts";
import { LOGIN_TEMPLATES, strategyTemplate, type TemplateNames } from "./strategy-template.ts";

interface NewOptions {
  account: string;
  output?: string;
}

export function addNew(program: Command): void {
  const command = program
    .command("new")
    .description("write a template of a strategy or a Blueprint")
    .addHelpText("after", "\nExample:\n  latchkey new blueprint invoices --from csv");
  withCommon(command.command("strategy"))
    .description("write a template of a strategy")
    .argument("<name>", "its id; the prefix `strat_` is added when missing")
    .addOption(
      new Option("--login <type>", "how it logs in").choices(Object.keys(LOGIN_TEMPLATES)).default("http"),
    )
    .addHelpText("after", "\nExample:\n  latchkey new strategy acme_portal --login oauth2")
    .action(async (given: string, options: NewOptions & { login: string }) => {
      const name = given.startsWith("strat_") ? given : `strat_${given}`;
      const names = { name, account: options.account, strategy: null };
      await write("strategy", strategyTemplate(options.login, names), names, options);
    });
  withCommon(command.command("blueprint"))
    .description("write a template of a Blueprint")
    .argument("<name>", "its key")
    .addOption(new Option("--from <source>", "where its data comes from").choices(SOURCES).default("http"))
    .option("--strategy <id>", "the strategy that its requests use to log in")
    .addHelpText(
      "after",
      "\nExample:\n  latchkey new blueprint invoices --from csv --strategy strat_acme_portal",
    )
    .action(async (name: string, options: NewOptions & { from: string; strategy?: string }) => {
      const names = { name, account: options.account, strategy: options.strategy ?? null };
      await write("blueprint", blueprintTemplate(options.from, names), names, options);
    });
}

const withCommon = (command: Command): Command =>
  command
    .option("--account <slug>", "the account that it belongs to", "acme")
    .option(
      "-o, --output <file>",
      "where to write it (default: <name>.yaml); an existing file is not replaced",
    );

async function write(
  kind: "strategy" | "blueprint",
  text: string,
  names: TemplateNames,
  { output }: NewOptions,
): Promise<void> {
  const file = output ?? `${names.name}.yaml`;
  await refuseWrongNames(text, names, file);
  try {
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, text, { flag: "wx" });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
    throw new CommandFailed(`${file} already exists. Choose another name, or --output.`);
  }
  print(
    `Wrote ${file}. Edit it, then: latchkey validate -f ${file}, together with its account${kind === "blueprint" && names.strategy !== null ? " and its strategy" : ""}.`,
  );
}

/** The template passes `validate`: an invalid name is refused first. */
async function refuseWrongNames(text: string, names: TemplateNames, file: string): Promise<void> {
  const { validateConfig } = await import("#actions/config/apply-config.ts");
  const strategy = names.strategy === null ? null : { ...names, name: names.strategy };
  const sources = [
    { file, text },
    ...(strategy === null ? [] : [{ file: "--strategy", text: strategyTemplate("bearer", strategy) }]),
  ];
  const { problems } = validateConfig(sources, { anyAccount: true });
  if (problems.length > 0)
    throw new CommandFailed(
      `${problems.map(formatProblem).join("\n")}\nNothing was written.`,
      EXIT_CODES.usage,
    );
}
