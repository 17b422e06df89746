import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { globSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { test } from "node:test";
import { makeBatches } from "./batches.ts";
import { missingInAll, tooSlow, unended, type KeptRun } from "./report-run.ts";
import { ALL_ONLY, inTier, NAMED_ONLY, OWN_PROCESS, SLOW_FILES } from "./tiers.ts";

const root = resolve(import.meta.dirname, "..");
const files = globSync(["test/**/*.test.ts", "test/**/*.e2e.ts"], { cwd: root }).toSorted();

test("every file with tests is found by its name", () => {
  const helpers = globSync("test/**/*.ts", { cwd: root }).filter((file) => !files.includes(file));
  const hidden = helpers.filter((file) =>
    /^(test|describe)\(/m.test(readFileSync(`${root}/${file}`, "utf8")),
  );
  assert.deepEqual(hidden, []);
});

test("every file that a list of tiers.ts names is there, with a reason, and in one tier", () => {
  for (const list of [ALL_ONLY, NAMED_ONLY, OWN_PROCESS, SLOW_FILES]) {
    for (const [file, reason] of Object.entries(list)) {
      assert.ok(files.includes(file), file);
      assert.ok(reason.length > 20, `${file}: ${reason}`);
    }
  }
  assert.deepEqual(
    Object.keys(SLOW_FILES).filter((file) => file in ALL_ONLY),
    [],
  );
});

test("every file is in one batch, and the seed decides the order of unit files alone", () => {
  const batches = makeBatches(files, 1);
  assert.deepEqual(batches.flatMap((batch) => batch.files).toSorted(), files);
  assert.deepEqual(makeBatches(files, 1), batches);
  const other = makeBatches(files, 2);
  const fixed = (each: typeof batches) => each.filter(({ name }) => name !== "unit");
  assert.deepEqual(fixed(other), fixed(batches));
  assert.notDeepEqual(other, batches);
  for (const file of Object.keys(OWN_PROCESS))
    assert.deepEqual(batches.find((batch) => batch.files.includes(file))?.files, [file]);
});

test("a file that changes its process for good has one of its own", () => {
  const changes =
    /\baddNodeFiles\(|process\.env\[[^\]]+\] = |delete process\.env|Object\.assign\(process\.env/;
  const changing = files.filter((file) => changes.test(readFileSync(`${root}/${file}`, "utf8")));
  assert.ok(changing.length >= 4, changing.join(", "));
  assert.deepEqual(
    changing.filter((file) => !(file in OWN_PROCESS)),
    [],
  );
});

test("a rejection that nobody handles fails the run, though no test is told of it", () => {
  const first = JSON.stringify(join(root, "test/untracked-promises.ts"));
  const program = `await import(${first});
    const { test } = await import("node:test");
    test("goes on", async () => void Promise.reject(new Error("lost")));`;
  const arguments_ = ["--disable-warning=ExperimentalWarning", "--input-type=module", "--eval", program];
  const { status, stdout, stderr } = spawnSync(process.execPath, arguments_, {
    encoding: "utf8",
    env: { ...process.env, NODE_TEST_CONTEXT: "" },
  });
  assert.match(stdout, /pass 1/);
  assert.match(stderr, /Nobody has handled a rejection: Error: lost/);
  assert.equal(status, 1, stdout);
});

test("an enumeration runs whole in the tier `all`, and in the fast one its representatives, never none", () => {
  const isEven = (member: number): boolean => member % 2 === 0;
  assert.deepEqual(inTier([1, 2, 3, 4], isEven, "all"), [1, 2, 3, 4]);
  assert.deepEqual(inTier([1, 2, 3, 4], isEven, "fast"), [2, 4]);
  for (const tier of ["fast", "all"] as const)
    assert.throws(() => inTier([1, 3], isEven, tier), /needs a representative/);
});

const run = (tier: KeptRun["tier"], paths: readonly (readonly string[])[], cpuSeconds = 0): KeptRun => ({
  tier,
  seconds: 0,
  files: [{ file: "test/one.test.ts", cpuSeconds }],
  tests: paths.map((path) => ({ path, outcome: "passed" })),
});

test("a test of the fast tier that the tier `all` lacks is named; a count in a name may differ", () => {
  const fast = run("fast", [
    ["test/one.test.ts", "200 requests"],
    ["test/one.test.ts", "gone"],
  ]);
  assert.deepEqual(missingInAll(fast, run("all", [["test/one.test.ts", "1,000 requests"]])), [
    "test/one.test.ts > gone",
  ]);
});

test("a file whose end nobody was told of is named: its tests were lost, and none has failed", () => {
  const one = { path: ["test/one.test.ts", "a test"], outcome: "passed" } as const;
  const files = ["test/one.test.ts", "test/two.test.ts"];
  assert.deepEqual(unended(files, [one, { ended: "test/one.test.ts" }, { ended: "test/two.test.ts" }]), []);
  assert.match(String(unended(files, [one, { ended: "test/two.test.ts" }])), /^test\/one\.test\.ts did not/);
});

test("a file that takes too long in the fast tier is named, with what to do", () => {
  assert.deepEqual(tooSlow(run("fast", [], 15)), []);
  assert.match(String(tooSlow(run("fast", [], 15.1))), /one\.test\.ts took 15\.1 CPU seconds.*SLOW_FILES/);
  assert.deepEqual(tooSlow(run("all", [], 100)), []);
});
