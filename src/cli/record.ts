import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { InvalidArgumentError, type Command } from "commander";
import { formatProblem } from "#domain/config-problem.ts";
import type { RecordedAction, Recording } from "#outbound/browser/recorder.ts";
import type { OpenBrowser } from "#outbound/browser/open-browser.ts";
import type { Composition } from "./composition.ts";
import { CommandFailed, EXIT_CODES, plain, print, tell } from "./output.ts";
import { draftDocuments, type DraftRequest } from "./recorded-draft.ts";
import { sayAction } from "./recorded-steps.ts";
import { stopSignal } from "./stop-signal.ts";

interface RecordOptions {
  strategy?: string;
  blueprint?: string;
  account: string;
  output?: string;
  host: string[];
  headless?: boolean;
}

/** A recording ends by its author; this only keeps a forgotten one from staying forever. */
const RECORDING_MS = 8 * 3_600_000;
const DOWNLOAD_BYTES_MAX = 268_435_456;

export function addRecord(program: Command, composition: Composition): void {
  program
    .command("record")
    .description("write a strategy or a Blueprint for a target's pages by using them in a window")
    .argument("<url>", "the page to begin with", readUrl)
    .option("--strategy <id>", "write the login as this strategy; the prefix `strat_` is added when missing")
    .option("--blueprint <key>", "write what is done, after the login if there is one, as this Blueprint")
    .option("--account <slug>", "the account that they belong to", "acme")
    .option("--host <origin>", "a further origin whose pages may be opened; may be repeated", readHost, [])
    .option(
      "-o, --output <file>",
      "where to write it (default: <name>.yaml); an existing file is not replaced",
    )
    .option("--headless", "without a window, for a program that uses the page")
    .addHelpText(
      "after",
      "\nExamples:\n  latchkey record https://portal.example.com/login --strategy acme_portal" +
        "\n  latchkey record https://portal.example.com/login --blueprint invoices",
    )
    .action(async (url: URL, options: RecordOptions) => await record(composition, url, options));
}

function readUrl(text: string): URL {
  const url = URL.parse(text);
  if (url === null || !/^https?:$/.test(url.protocol))
    throw new InvalidArgumentError("It must be a URL that begins with http:// or https://.");
  return url;
}

const readHost = (text: string, before: readonly string[]): readonly string[] => [
  ...before,
  readUrl(text).origin,
];

async function record(composition: Composition, url: URL, options: RecordOptions): Promise<void> {
  const { blueprint = null, account } = options;
  if (options.strategy === undefined && blueprint === null)
    throw new CommandFailed(
      "What is to be written? --strategy ID, --blueprint KEY, or both.",
      EXIT_CODES.usage,
    );
  const strategy = options.strategy?.replace(/^(?!strat_)/, "strat_") ?? null;
  const file = options.output ?? `${blueprint ?? strategy}.yaml`;
  if (existsSync(file))
    throw new CommandFailed(`${file} already exists. Choose another name, or --output.`, EXIT_CODES.usage);
  const hosts = [...new Set([url.origin, ...options.host])];
  const request = { url: url.href, hosts, account, strategy, blueprint };
  const { recording, refused } = await recordPages(composition, request, options.headless === true);
  const text = draftDocuments(recording, request);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, text, { flag: "wx" });
  print(`Wrote ${file}. Look through it, then: latchkey validate -f ${file}, together with its account.`);
  if (refused.length > 0)
    tell(
      `Pages of ${refused.join(", ")} were not opened. If the steps need them, record again with ${refused.map((origin) => `--host ${origin}`).join(" ")}.`,
    );
  await tellProblems(file, text);
}

/** What the person does until the last window is closed, or Ctrl-C is pressed. */
async function recordPages(
  composition: Composition,
  { url, hosts }: DraftRequest,
  isHeadless: boolean,
): Promise<{ readonly recording: Recording; readonly refused: readonly string[] }> {
  const interrupt = stopSignal(["SIGINT", "SIGTERM"]);
  const { startRecording } = await import("#outbound/browser/recorder.ts");
  await using opened = new AsyncDisposableStack();
  const gate = opened.adopt(await composition.openEgressGate(), async (each) => await each.close());
  const browsers = opened.adopt(
    await composition.openBrowsers(gate, isHeadless ? undefined : { slowMs: 0 }),
    async (each) => await each.close(),
  );
  // Scripts, pictures and data may come from anywhere: the author sees from where, and decides.
  const reach = {
    hosts,
    resources: "any",
    timeoutMs: RECORDING_MS,
    downloadBytesMax: DOWNLOAD_BYTES_MAX,
  } as const;
  const browser = await browsers
    .open({ ...reach, signal: new AbortController().signal })
    .catch((error: unknown) => failWith(error));
  const recording = await startRecording(browser, hosts, sayDone());
  await browser.page.goto(url).catch((error: unknown) => failWith(browser.explain(error)));
  tell("Recording. Close the window, or press Ctrl-C here, when you are done.");
  await Promise.race([recording.ended, interrupt.come]);
  await recording.stop();
  return { recording, refused: refusedPages(browser) };
}

function failWith(error: unknown): never {
  const isOurs = error instanceof Error && error.name === "BrowserError";
  throw isOurs ? new CommandFailed(error.message) : error;
}

/** Tells each step once: a field that is being typed into is one. */
function sayDone(): (action: RecordedAction) => void {
  const before: RecordedAction[] = [];
  let last = "";
  return (action) => {
    if (["navigate", "openPage", "closePage"].includes(action.name)) return;
    const said = plain(sayAction(action, before));
    before.push(action);
    if (said !== last) tell(`  ${said}`);
    last = said;
  };
}

const refusedPages = (browser: OpenBrowser): readonly string[] => [
  ...new Set(
    browser
      .refused()
      .filter(({ kind, origin }) => kind === "document" && /^https?:/.test(origin))
      .map(({ origin }) => origin),
  ),
];

/** The file is written in any case: it is a draft, and what was done can't be had again. */
async function tellProblems(file: string, text: string): Promise<void> {
  const { validateConfig } = await import("#actions/config/apply-config.ts");
  const { problems } = validateConfig([{ file, text }], { anyAccount: true });
  if (problems.length > 0) tell(`To correct:\n${problems.map(formatProblem).join("\n")}`);
}
