// A million records cost what a thousand do. Design, page 3: "never held whole in memory". The full sizes: `npm run bench -- data`.
import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { test } from "node:test";
import { openDataStage } from "../../scripts/bench/data-run.ts";
import { startProgram } from "../../scripts/bench/processes.ts";

const SMALL = 20_000;
const LARGE = 80_000;
/** What the larger run's records take as text alone is 60 MB, and as objects several times as much. */
const GROWTH_MIB_MAX = 50;

test(
  "a worker's memory does not grow with the records of its run",
  { skip: !existsSync("/proc/self/status") },
  async (t) => {
    await using target = startProgram("./data-target-process.ts");
    await using stage = await openDataStage(`http://127.0.0.1:${await target.ask<number>({})}`);
    const say = (text: string): void => t.diagnostic(text);
    const small = await stage.measure("json-simple", SMALL, say);
    const large = await stage.measure("json-simple", LARGE, say);
    assert.equal(small.records, SMALL);
    assert.equal(large.records, LARGE);
    assert.equal(large.valid, LARGE - LARGE / 200);
    assert.ok(large.peakMiB < small.peakMiB + GROWTH_MIB_MAX, `${small.peakMiB} MiB, ${large.peakMiB} MiB`);
    assert.ok(large.peakMiB < 300, `${large.peakMiB} MiB`);
  },
);
