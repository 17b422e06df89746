import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { InvalidArgumentError, type Command } from "commander";
import type { Composition } from "./composition.ts";
import { CommandFailed, EXIT_CODES } from "./output.ts";
import type { RunOptions } from "./run-blueprint.ts";
import { stopSignal } from "./stop-signal.ts";

const ROWS_SHOWN = 10;

const collect = (value: string, before: string[]): string[] => [...before, value];

export function addRun(program: Command, composition: Composition): void {
  program
    .command("run")
    .description(
      "run a Blueprint from its file, against its target or a recording, without a service or database",
    )
    .argument("<path...>", "files or folders with the Blueprint and the strategies of its slots")
    .option("--blueprint <key>", "the Blueprint, when the files have several")
    .option("--input <ref=value>", "an INPUT's value, or =@file; may be repeated", collect, [])
    .option("--metadata <name=value>", "a metadata item", collect, [])
    .option(
      "--credential <slot=fields.yaml>",
      "a slot's credential: a file with its fields, or `env`",
      collect,
      [],
    )
    .option("--record <file>", "save the target's answers, without secrets")
    .option("--replay <file>", "use a recording instead of the target")
    .option(
      "--trace <folder>",
      "save every request and answer, those of logins included, one file each, without secrets",
    )
    .option("--pictures <folder>", "save the pictures of a browser's pages, with secrets covered")
    .option("--headed", "show the browser in a window")
    .option(
      "--slow [milliseconds]",
      "with --headed: pause before each action of the browser (default: 500)",
      readSlow,
    )
    .option("--check", "with --replay: fail unless the results match the recording")
    .option("--approve", "approve reviews without changes")
    .option("--allow-writes", "send requests that write")
    .option("--rows <count>", "how many records to show per node", readRows, ROWS_SHOWN)
    .option("--json", "print nodes and results as JSON")
    .addHelpText(
      "after",
      "\nExamples:\n  latchkey run examples --blueprint invoice-table --credential portal=login.yaml --record invoices.json" +
        "\n  latchkey run examples --replay invoices.json --check",
    )
    .action(async (paths: string[], options: RunOptions) => {
      checkOptions(options);
      const interrupt = stopSignal(["SIGINT", "SIGTERM"]);
      const folder = mkdtempSync(join(tmpdir(), "latchkey-run-"));
      try {
        const { runBlueprint } = await import("./run-blueprint.ts");
        await interrupt.race(runBlueprint(composition, paths, options, folder));
      } finally {
        rmSync(folder, { recursive: true, force: true });
      }
    });
}

function readRows(text: string): number {
  if (!/^\d{1,6}$/.test(text)) throw new InvalidArgumentError("It must be a whole number.");
  return Number(text);
}

/** Commander gives `true` for an option without its value, without asking this. */
function readSlow(text: string): number {
  if (!/^\d{1,5}$/.test(text)) throw new InvalidArgumentError("It must be a whole number of milliseconds.");
  return Number(text);
}

function checkOptions({ record, replay, check, credential, trace, headed, slow }: RunOptions): void {
  const wrong =
    record !== undefined && replay !== undefined
      ? "--record and --replay can't go together: a recording is made from the target."
      : check === true && replay === undefined
        ? "--check needs --replay: it compares the results with the recording."
        : replay !== undefined && credential.length > 0
          ? "--replay takes no --credential: nothing is sent."
          : replay !== undefined && trace !== undefined
            ? "--replay takes no --trace: nothing is sent."
            : slow !== undefined && headed !== true
              ? "--slow needs --headed: without a window nobody sees it."
              : null;
  if (wrong !== null) throw new CommandFailed(wrong, EXIT_CODES.usage);
}
