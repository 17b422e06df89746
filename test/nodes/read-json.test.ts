import assert from "node:assert/strict";
import { test } from "node:test";
import { readJson } from "#nodes/read-json.ts";

const pad = " ".repeat(100_000);

test("brackets without end are refused before they are parsed", () => {
  for (const open of ["[", '{"a":', '[{"a":']) {
    const cpuBefore = process.threadCpuUsage();
    assert.deepEqual(readJson(open.repeat(5_000_000)), {
      ok: false,
      problem: "is nested deeper than 500 levels",
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
    assert.deepEqual(readJson(pad + text), { ok: false, problem: "is not JSON" });
});
