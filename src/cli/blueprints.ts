import { InvalidArgumentError, type Command } from "commander";
import { CURRENT_VERSION_NAME } from "#domain/labels/states.ts";
import type { Composition } from "./composition.ts";
import { refusal } from "./print-plan.ts";
import { paint, plain, print, table, tell } from "./output.ts";
import { openOwnSigning } from "./own-signing.ts";
import { proposedInstead } from "./proposed.ts";
import { addPageOptions, minute, printMore, type PageOptions } from "./pages.ts";

export function addBlueprints(program: Command, composition: Composition): void {
  const blueprints = program
    .command("blueprints")
    .description("list Blueprints, show their versions, and republish an earlier one")
    .addHelpText(
      "after",
      "\nExamples:\n  latchkey blueprints list\n  latchkey blueprints show acme supplier-invoices\n  latchkey blueprints publish acme supplier-invoices 3",
    );
  addPageOptions(
    blueprints
      .command("list")
      .description("list Blueprints, by account and key")
      .option("--account <name>", "only those of one account"),
  )
    .addHelpText("after", "\nExample:\n  latchkey blueprints list --account acme")
    .action(async (options: PageOptions) => await list(composition, options));
  blueprints
    .command("show")
    .description("show a Blueprint: its inputs, versions and document")
    .argument("<account>", "the account's name")
    .argument("<key>", "the Blueprint's key")
    .argument(
      "[version]",
      "show this version instead of the current one, with its changes since the one before",
      readVersion,
    )
    .option("--json", "print it as JSON, as the operator API returns it")
    .addHelpText("after", "\nExample:\n  latchkey blueprints show acme supplier-invoices 3")
    .action(
      async (account: string, name: string, version: number | undefined, options: { json?: boolean }) =>
        await (version === undefined
          ? show(composition, { account, name }, options)
          : showVersion(composition, { account, name }, version, options)),
    );
  blueprints
    .command("publish")
    .description("publish an earlier version's document again, as a new version")
    .argument("<account>", "the account's name")
    .argument("<key>", "the Blueprint's key")
    .argument("<version>", "the version's number, as `blueprints show` lists it", readVersion)
    .option("--json", "print the changes as JSON")
    .addHelpText("after", "\nExample:\n  latchkey blueprints publish acme supplier-invoices 3")
    .action(
      async (account: string, name: string, version: number, options: { json?: boolean }) =>
        await publish(composition, { account, name }, version, options),
    );
}

function readVersion(text: string): number {
  if (!/^[1-9]\d{0,8}$/.test(text)) throw new InvalidArgumentError("It must be a version's number, from 1.");
  return Number(text);
}

async function list(composition: Composition, { json, ...query }: PageOptions): Promise<void> {
  const { listBlueprints } = await import("#actions/operators/get-documents.ts");
  const found = await composition.withDatabase(async (db) => await listBlueprints(db, query, null));
  if (json === true) return print(JSON.stringify(found));
  if (found.items.length === 0) {
    print("There are no Blueprints.");
    return tell("Write one with `latchkey new blueprint`, and publish it with `latchkey apply -f FILE`.");
  }
  print(
    table(
      ["ACCOUNT", "KEY", "NAME", "VERSION", "APPLIED", "BY", "LAST RUN"],
      found.items.map((each) => [
        each.account,
        each.key,
        plain(each.name),
        `${each.version}${each.retired ? ", retired" : ""}`,
        minute(each.applied_at),
        each.applied_by ?? "command line",
        each.last_run === null ? "none" : `${each.last_run.status}, ${minute(each.last_run.created_at)}`,
      ]),
    ),
  );
  printMore(found.next_cursor);
}

interface Place {
  readonly account: string;
  readonly name: string;
}

async function showVersion(
  composition: Composition,
  place: Place,
  version: number,
  { json }: { json?: boolean },
): Promise<void> {
  const { getVersion } = await import("#actions/operators/get-documents.ts");
  const found = await composition.withDatabase(
    async (db) =>
      await getVersion(db, { kind: "blueprint", ...place }, { version: String(version), against: undefined }),
  );
  if (json === true) return print(JSON.stringify(found));
  for (const { path, before, after } of found.differences)
    print(`${path}: ${before ?? "(nothing)"} → ${after ?? "(nothing)"}`);
  print(`${found.differences.length > 0 ? "\n" : ""}${found.yaml.trimEnd()}`);
}

async function show(composition: Composition, place: Place, { json }: { json?: boolean }): Promise<void> {
  const look = await import("#actions/operators/get-documents.ts");
  const document = { kind: "blueprint", ...place } as const;
  await composition.loadNodeTypes();
  const [found, versions] = await composition.withDatabase(
    async (db) => await Promise.all([look.getBlueprint(db, place), look.listVersions(db, document, {})]),
  );
  if (json === true) return print(JSON.stringify(found));
  print(
    `${paint("bold", `${found.account}/${found.key}`)}  ${plain(found.name)}${found.retired ? "  (retired)" : ""}`,
  );
  const names = (items: readonly string[]): string => (items.length === 0 ? "none" : items.join(", "));
  print(`credentials ${names(found.credentials.map(({ slot, strategy }) => `${slot} (${strategy})`))}`);
  print(`inputs      ${names(found.inputs.map((each) => each.ref_key))}`);
  print(`metadata    ${names(found.metadata.map(({ name }) => name))}`);
  print(
    `\n${table(
      ["VERSION", "APPLIED", "BY", ""],
      versions.items.map((each) => [
        String(each.version),
        minute(each.applied_at),
        each.applied_by ?? "command line",
        each.is_in_force ? CURRENT_VERSION_NAME : "",
      ]),
    )}`,
  );
  print(`\n${found.yaml.trimEnd()}`);
}

async function publish(
  composition: Composition,
  place: Place,
  version: number,
  { json }: { json?: boolean },
): Promise<void> {
  const [{ getVersion }, { applyConfig }] = await Promise.all([
    import("#actions/operators/get-documents.ts"),
    import("#actions/config/apply-config.ts"),
  ]);
  const document = { kind: "blueprint", ...place } as const;
  await composition.loadNodeTypes();
  const outcome = await composition.withDatabase(async (db) => {
    const wanted = { version: String(version), against: undefined };
    const { yaml } = await getVersion(db, document, wanted);
    return await applyConfig(db, openOwnSigning(composition), [
      { file: `version ${version} of ${place.name}`, text: yaml },
    ]);
  });
  if (!outcome.ok) throw refusal(outcome.problems);
  if (outcome.proposal !== null)
    throw proposedInstead(composition.config().publicUrl ?? "", outcome.proposal);
  if (json === true) return print(JSON.stringify({ changes: outcome.changes }));
  const isChanged = outcome.changes.some(({ change }) => change !== "unchanged");
  print(
    isChanged
      ? `Published version ${version} of ${place.account}/${place.name} again. \`latchkey blueprints show\` lists it as the newest.`
      : `Nothing changed: the current version is the same as version ${version}.`,
  );
}
