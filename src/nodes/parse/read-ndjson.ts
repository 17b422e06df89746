import { setImmediate } from "node:timers/promises";
import { isJsonObject } from "#domain/json.ts";
import { limits } from "#domain/limits.ts";
import { validRecord, type DataRecord, type RecordBatches } from "#domain/record.ts";
import { NodeFailure } from "#nodes/define-node.ts";
import { kindOf } from "#nodes/records/expression-value.ts";
import { readJson } from "#domain/read-json.ts";

const LINE_CHARACTERS_MAX = 1_000_000;
/** A batch of long lines ends early, so that no batch is large. */
const BATCH_CHARACTERS_MAX = 1_000_000;
const SLICE_CHARACTERS = 65_536;

/** One JSON object per line, streamed; empty lines are skipped. Throws NodeFailure with the line number for anything else. */
export async function* readNdjson(
  text: AsyncIterable<string>,
  place: string,
  signal: AbortSignal,
): RecordBatches {
  let batch: DataRecord[] = [];
  let characters = 0;
  let number = 0;
  for await (const lines of linesOf(text, place)) {
    signal.throwIfAborted();
    for (const line of lines) {
      number += 1;
      if (line.trim() === "" || line === "\uFEFF") continue;
      batch.push(readLine(line, place, number));
      characters += line.length;
      if (batch.length < limits.recordBatchSizeMax && characters < BATCH_CHARACTERS_MAX) continue;
      yield batch;
      batch = [];
      characters = 0;
    }
  }
  if (batch.length > 0) yield batch;
}

function readLine(line: string, parsed: string, number: number): DataRecord {
  const place = `${parsed}, line ${number}`;
  const read = readJson(line);
  if (!read.ok) throw new NodeFailure(`${place} ${read.problem}.`);
  if (isJsonObject(read.json)) return validRecord(read.json);
  throw new NodeFailure(`${place} is ${kindOf(read.json)}; every line must be an object.`);
}

async function* linesOf(text: AsyncIterable<string>, place: string): AsyncIterable<readonly string[]> {
  let rest = "";
  let number = 1;
  for await (const piece of text) {
    for (let start = 0; start < piece.length; start += SLICE_CHARACTERS) {
      const lines = (rest + piece.slice(start, start + SLICE_CHARACTERS)).split("\n");
      rest = lines.pop() ?? "";
      yield lines;
      number += lines.length;
      if (rest.length > LINE_CHARACTERS_MAX) {
        throw new NodeFailure(`${place}, line ${number} is longer than ${LINE_CHARACTERS_MAX} characters.`);
      }
      // A long text in memory would block the event loop.
      await setImmediate();
    }
  }
  if (rest !== "") yield [rest];
}
