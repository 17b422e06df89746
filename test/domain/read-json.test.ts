import assert from "node:assert/strict";
import { test } from "node:test";
import { readJson } from "#domain/read-json.ts";

const pad = " ".repeat(100_000);

test("brackets without end are refused before they are parsed", () => {
  for (const open of ["[", '{"a":', '[{"a":']) {
    const cpuBefore = process.threadCpuUsage();
    assert.deepEqual(readJson(open.repeat(5_000_000)), {
      ok: false,
      problem: "is nested deeper than 500 levels",
      isTooMuch: true,
    });
    const { user, system } = process.threadCpuUsage(cpuBefore);
    // `JSON.parse` alone takes 800 ms of it.
    assert.ok(user + system < 250_000, `${open}: ${user + system} µs`);
  }
});

test("what stands in texts is no bracket, and what is closed is not deep", () => {
  for (const json of [
    JSON.stringify({ text: "[".repeat(2_000), end: `\\"${"{".repeat(2_000)}\\\\` }),
    JSON.stringify(Array.from({ length: 2_000 }, () => [{}, []])),
    `${"[".repeat(500)}1${"]".repeat(500)}`,
  ])
    assert.deepEqual(readJson(json + pad), { ok: true, json: JSON.parse(json) });
  assert.equal(readJson(`${"[".repeat(501)}${"]".repeat(501)}${pad}`).ok, false);
  // Not JSON at all.
  for (const text of ['"\\', '"', "]]]]", `"${"\\".repeat(100_000)}`])
    assert.deepEqual(readJson(pad + text), { ok: false, problem: "is not JSON", isTooMuch: false });
});

test("values are counted before there are any", () => {
  const heapBefore = process.memoryUsage().heapUsed;
  for (const unit of ["[],", "{},", '"",', "1,", '{"":0},'])
    assert.deepEqual(readJson(`[${unit.repeat(3_000_000)}0]`), {
      ok: false,
      problem: "has more than 1000000 values",
      isTooMuch: true,
    });
  // Any of them takes 24 MB in its list alone.
  assert.ok(process.memoryUsage().heapUsed - heapBefore < 100e6);
  assert.equal(readJson(`[${"0,".repeat(999_998)}0]`).ok, true);
  assert.equal(readJson(`[${"0,".repeat(999_999)}0]`).ok, false);
  // A comma in a text is none.
  assert.equal(readJson(JSON.stringify([",".repeat(2_000_000)])).ok, true);
});
