// A million records cost what a thousand do. docs/decisions/0029. The full sizes: `npm run bench -- data`.
import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { test } from "node:test";
import { openDataStage } from "../../bench/data-run.ts";
import { startProgram } from "../../bench/processes.ts";

const RECORDS = 60_000;
/** What any run of some size takes is 60 MiB; held as text alone, these records would be 57 MiB more, and several times that as objects. */
const GROWTH_MIB_MAX = 95;

const TURNS = 100_000;

test(
  "a loop over 100,000 records keeps none of them in memory",
  { skip: !existsSync("/proc/self/status"), timeout: 600_000 },
  async (t) => {
    await using target = startProgram("./data-target-process.ts");
    await using stage = await openDataStage(`http://127.0.0.1:${await target.ask<number>({})}`);
    const run = await stage.measure("loop", TURNS, (text) => t.diagnostic(text));
    t.diagnostic(
      `${run.seconds} s, ${run.cpuSeconds} CPU s, idle ${run.idleMiB} MiB, peak ${run.peakMiB} MiB`,
    );
    assert.equal(run.records, TURNS);
    assert.ok(run.peakMiB < 300, `${run.peakMiB} MiB`);
  },
);

test(
  "a worker's memory does not grow with the records of its run",
  { skip: !existsSync("/proc/self/status") },
  async (t) => {
    await using target = startProgram("./data-target-process.ts");
    await using stage = await openDataStage(`http://127.0.0.1:${await target.ask<number>({})}`);
    const run = await stage.measure("json-simple", RECORDS, (text) => t.diagnostic(text));
    assert.equal(run.records, RECORDS);
    assert.equal(run.valid, RECORDS - RECORDS / 200);
    assert.ok(run.peakMiB < run.idleMiB + GROWTH_MIB_MAX, `idle ${run.idleMiB} MiB, ${run.peakMiB} MiB`);
    assert.ok(run.peakMiB < 300, `${run.peakMiB} MiB`);
  },
);
