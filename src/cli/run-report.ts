import { brotliDecompressSync } from "node:zlib";
import type { BlobStore } from "#blobs/store.ts";
import type { NewResult } from "#db/runs/run-results.ts";
import { withoutHandles, withoutHandlesIn } from "#domain/handle-text.ts";
import type { Json } from "#domain/json.ts";
import { shorten } from "#domain/config-problem.ts";
import type { DataRecord } from "#domain/record.ts";
import type { Value } from "#domain/value.ts";
import type { ExecutedNode } from "#engine/local/local-run.ts";
import { CommandFailed, paint, plain, print } from "./output.ts";
import { recordTable } from "./review-records.ts";

/** A node in the output of `--json`. */
export interface NodeReport {
  readonly id: string;
  readonly type: string;
  readonly milliseconds: number;
  readonly failed: boolean;
  /** Warnings that its step's log would have. */
  readonly warnings: readonly string[];
  readonly value?: Json;
  readonly total?: number;
  readonly invalid?: number;
  /** The first records. */
  readonly records?: readonly DataRecord[];
}

const VALUE_CHARACTERS_MAX = 200;

export async function describeNode(executed: ExecutedNode, rows: number): Promise<NodeReport> {
  const { planned, durationMs, output, failed, warnings } = executed;
  const { id, type } = planned.node;
  const report = { id, type, milliseconds: Math.round(durationMs * 10) / 10, failed, warnings };
  if (output === null) return report;
  if (output.kind === "value") return { ...report, value: describeValue(output.value) };
  const records: DataRecord[] = [];
  let [total, valid] = [0, 0];
  for await (const batch of output.open()) {
    records.push(...batch.slice(0, rows - records.length).map(shown));
    total += batch.length;
    valid += batch.filter((record) => record.isValid).length;
  }
  return { ...report, total, invalid: total - valid, records };
}

/** Nodes see a handle in place of a value that the target gave; people see nothing. */
const shown = (record: DataRecord): DataRecord => ({ ...record, data: withoutHandlesIn(record.data) });

function describeValue(value: Value): Json {
  switch (value.form) {
    case "absent":
      return null;
    case "text":
      return withoutHandles(value.text);
    case "json":
      return withoutHandlesIn(value.json);
    case "file":
      return { filename: value.filename, content_type: value.contentType, size_bytes: value.sizeBytes };
  }
}

export function printNode(report: NodeReport): void {
  const { id, type, milliseconds, failed, warnings, value, total, invalid = 0, records = [] } = report;
  const what =
    total === undefined
      ? ""
      : ` ${count(total, "record")}${invalid > 0 ? `, ${paint("yellow", `${invalid} invalid`)}` : ""}`;
  const head = `${paint("bold", id)} (${type})${what}  ${paint("dim", `${milliseconds.toFixed(1)} ms`)}`;
  print(failed ? `${head}  ${paint("red", "failed")}` : head);
  for (const warning of warnings) print(`  ${paint("yellow", plain(warning))}`);
  if (value !== undefined) print(`  ${plain(shorten(shownValue(value), VALUE_CHARACTERS_MAX))}`);
  printRecords(records, total ?? 0);
}

function printRecords(records: readonly DataRecord[], total: number): void {
  if (records.length > 0)
    print(indented(recordTable(records.map((record, ordinal) => ({ ordinal, ...record })))));
  if (total > records.length) print(`  … and ${total - records.length} more`);
}

const shownValue = (value: Json): string =>
  value === null ? "(nothing)" : typeof value === "string" ? value : JSON.stringify(value);
const count = (number: number, noun: string): string => `${number} ${noun}${number === 1 ? "" : "s"}`;
const indented = (text: string): string => text.replaceAll(/^/gm, "  ");

/** A result in the form of the API. */
export interface ResultContent {
  readonly totalRecords: number;
  readonly records: readonly DataRecord[];
}

/** A larger result is neither shown nor kept in a recording. */
const RESULT_BYTES_MAX = 64 * 1_024 * 1_024;

export async function readResults(
  blobs: BlobStore,
  results: ReadonlyMap<string, NewResult>,
): Promise<Readonly<Record<string, ResultContent>>> {
  const read: [string, ResultContent][] = [];
  for (const [key, { content, blob, jsonBytes }] of results) {
    if (jsonBytes > RESULT_BYTES_MAX)
      throw new CommandFailed(
        `The result ${key} has ${jsonBytes} bytes, more than can be shown here. Read fewer records.`,
      );
    const bytes = content ?? brotliDecompressSync(await collect(blobs.open(blob?.key ?? "")));
    read.push([key, JSON.parse(bytes.toString("utf8")) as ResultContent]);
  }
  return Object.fromEntries(read);
}

async function collect(bytes: AsyncIterable<Uint8Array>): Promise<Buffer> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of bytes) chunks.push(chunk);
  return Buffer.concat(chunks);
}

export function printResults(results: Readonly<Record<string, ResultContent>>, rows: number): void {
  for (const [key, { totalRecords, records }] of Object.entries(results)) {
    print(`${paint("green", "result")} ${paint("bold", key)} ${count(totalRecords, "record")}`);
    printRecords(records.slice(0, rows), totalRecords);
  }
}
