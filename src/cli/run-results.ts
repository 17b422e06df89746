import { createWriteStream, statSync } from "node:fs";
import { rename, rm } from "node:fs/promises";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { Option, type Command } from "commander";
import type { ExportFormat, WantedExport } from "#actions/runs/export-results.ts";
import type { Composition } from "./composition.ts";
import { CommandFailed, EXIT_CODES, tell, withProgress } from "./output.ts";
import { onService, type RemoteService } from "./remote.ts";

interface ResultsOptions {
  key?: string;
  handle?: string;
  format: ExportFormat;
  output?: string;
  bom?: boolean;
}

export function addRunResults(runs: Command, composition: Composition): void {
  runs
    .command("results")
    .description("write the records of a completed run to a file, or to standard output")
    .argument("<id>", "its id (run_…) or its run key (a UUID)")
    .option("--key <refKey>", "the result, when the run has several")
    .option("--handle <key>", "the handle, when the output has several")
    .addOption(
      // Repeated here, because `--help` must not load the action.
      new Option("--format <format>", "format of the file")
        .choices(["ndjson", "csv", "xlsx"])
        .default("ndjson"),
    )
    .option("--output <file>", "the file; it appears only when it is complete")
    .option("--bom", "csv: begin with a byte order mark, so that Excel reads it as UTF-8")
    .addHelpText(
      "after",
      "\nExamples:\n  latchkey runs results run_0VbbSVh5… --format xlsx --output invoices.xlsx\n" +
        "  latchkey runs results run_0VbbSVh5… --key invoices --handle rejected --format csv",
    )
    .action(async (id: string, options: ResultsOptions) => await writeResults(composition, id, options));
}

async function writeResults(composition: Composition, id: string, options: ResultsOptions): Promise<void> {
  const { key, handle, format, output } = options;
  if (handle !== undefined && key === undefined)
    throw new CommandFailed("--handle needs --key: the refKey of its output.", EXIT_CODES.usage);
  if (options.bom === true && format !== "csv")
    throw new CommandFailed("--bom works only with --format csv.", EXIT_CODES.usage);
  if (output !== undefined && statSync(output, { throwIfNoEntry: false })?.isFile() === true)
    throw new CommandFailed(`${output} already exists. Choose another file, or remove it.`);
  if (format === "xlsx" && output === undefined && process.stdout.isTTY)
    throw new CommandFailed(
      "A workbook can't be shown in a terminal. Name a file with --output.",
      EXIT_CODES.usage,
    );
  const wanted = {
    run: id,
    key: key === undefined ? null : handle === undefined ? key : `${key}.${handle}`,
    format,
    bom: options.bom === true,
  };
  await onService(composition, {
    here: async (db) => {
      const { exportResults } = await import("#actions/runs/export-results.ts");
      await writeBytes(await exportResults({ db, blobs: await composition.openStore() }, wanted), output);
    },
    remote: async (service) => await writeBytes(await exportRemotely(service, wanted), output),
  });
}

interface Exported {
  readonly totalRecords: number;
  readonly bytes: AsyncIterable<Uint8Array>;
}

async function writeBytes({ bytes, totalRecords }: Exported, output: string | undefined): Promise<void> {
  if (output === undefined) return await toStandardOutput(bytes);
  await withProgress(`Writing ${totalRecords} records`, toFile(bytes, output));
  tell(`${totalRecords} records in ${output}.`);
}

async function exportRemotely(
  service: RemoteService,
  { run, key, format, bom }: WantedExport,
): Promise<Exported> {
  const { downloadResult, readRun } = await import("#contract/operator/runs.ts");
  const { status, results } = await service.call(readRun, { params: { runId: run } });
  if (status !== "completed")
    throw new CommandFailed(`The run is ${status}; results exist once it is completed.`);
  const keys = results.map((result) => result.key);
  const found = results.find((result) => (key === null ? results.length === 1 : result.key === key));
  if (!found)
    throw new CommandFailed(
      key === null
        ? `The run has ${results.length} results. Choose one with --key: ${keys.join(", ")}.`
        : `The run has no result ${key}; it has ${keys.join(", ")}.`,
    );
  const bytes = await service.download(downloadResult, {
    params: { runId: run, resultKey: found.key },
    query: { format, ...(bom ? { bom } : {}) },
  });
  return { totalRecords: found.total_records, bytes };
}

async function toStandardOutput(bytes: AsyncIterable<Uint8Array>): Promise<void> {
  try {
    await pipeline(Readable.from(bytes), process.stdout, { end: false });
  } catch (error) {
    // The reader has closed the pipe, as `head` does.
    if ((error as NodeJS.ErrnoException).code !== "EPIPE") throw error;
  }
}

/** Writes to a temporary file first, so that an incomplete file is never taken for a complete one. */
async function toFile(bytes: AsyncIterable<Uint8Array>, path: string): Promise<void> {
  const unfinished = `${path}.part`;
  try {
    await pipeline(Readable.from(bytes), createWriteStream(unfinished, { mode: 0o600 }));
    await rename(unfinished, path);
  } catch (error) {
    await rm(unfinished, { force: true });
    const { code, syscall } = error as NodeJS.ErrnoException;
    if (syscall === undefined) throw error;
    throw new CommandFailed(`${path} can't be written (${code ?? "error"}).`);
  }
}
