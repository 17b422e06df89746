/**
 * Sorts, dedupes and joins many records in a process of its own, whose heap is too small for them.
 * `<records>`: how many. Prints what came out and the largest resident size.
 */
import { tmpdir } from "node:os";
import { openEvaluator } from "#expressions/evaluator.ts";
import { limits } from "#domain/limits.ts";
import { validRecord, type RecordBatches } from "#domain/record.ts";
import { makeRedactor } from "#engine/redaction/redact.ts";
import { decodeRecords } from "#domain/record-lines.ts";
import { encodeRecords, Scratch } from "#engine/outputs/spool.ts";
import { must } from "#lib/assert.ts";
import type { NodeContext, NodeType } from "#nodes/define-node.ts";
import { node as dedupe } from "#nodes/types/dedupe.ts";
import { node as join } from "#nodes/types/join.ts";
import { node as sort } from "#nodes/types/sort.ts";
import type { JsonObject } from "#domain/json.ts";

const count = Number(process.argv[2]);
const evaluator = openEvaluator();
await using scratch = new Scratch(tmpdir(), `run_order${process.pid}`, 1);

/** Every key twice, far apart. Texts of their own, so that no two records share memory. */
async function* made(field: string, characters: number): RecordBatches {
  for (let first = 0; first < count; first += limits.recordBatchSizeMax) {
    yield Array.from({ length: limits.recordBatchSizeMax }, (_, index) => {
      const key = ((first + index) * 7_919) % (count / 2);
      return validRecord({ key, [field]: Buffer.alloc(characters, `${first + index} `).toString("latin1") });
    });
  }
}

async function run(
  type: NodeType,
  config: JsonObject,
  from: readonly RecordBatches[],
): Promise<RecordBatches> {
  const context: Pick<NodeContext, "node" | "from" | "expressions" | "spill"> = {
    node: { type: type.type, from: ["a"], config } as unknown as NodeContext["node"],
    from: from.map((batches) => ({ kind: "records", batches })),
    expressions: evaluator.bind({}),
    spill: async (batches) => {
      const reopen = await scratch.keep(encodeRecords(batches, makeRedactor([]), { total: 0, valid: 0 }));
      return () => decodeRecords(reopen());
    },
  };
  const flow = must(await type.run(context as NodeContext, config), "records");
  if (flow.kind !== "records") throw new Error("not records");
  return flow.batches;
}

const sorted = await run(sort, { by: { expression: "key", order: "descending" } }, [made("left", 8_000)]);
const unique = await run(dedupe, { by: "key" }, [sorted]);
const joined = await run(join, { with: "b", on: "key" }, [unique, made("right", 500)]);
let records = 0;
let last = Infinity;
let isOrdered = true;
for await (const batch of joined) {
  for (const { data } of batch) {
    records += 1;
    isOrdered &&= Number(data["key"]) <= last;
    last = Number(data["key"]);
  }
}
process.stdout.write(
  JSON.stringify({
    records,
    isOrdered,
    last,
    residentMiB: Math.round(process.resourceUsage().maxRSS / 1_024),
  }),
);
await evaluator.close();
