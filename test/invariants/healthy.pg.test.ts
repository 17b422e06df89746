import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { Bench } from "../documents/bench.ts";
import { assertInvariants } from "../invariants.ts";
import { openWorkload, work } from "./workload.ts";

let bench: Bench;

before(async () => {
  bench = await openWorkload();
});

after(async () => await bench?.[Symbol.asyncDispose]());

test("a healthy installation has no finding, neither while it works nor after", async () => {
  let isWorking = true;
  const looking = (async () => {
    let looks = 0;
    for (; isWorking; looks++) await assertInvariants(bench.installation);
    return looks;
  })();
  const working = (async () => {
    await work(bench);
    await work(bench);
  })().finally(() => (isWorking = false));
  const [looks] = await Promise.all([looking, working]);
  assert.ok(looks > 1, "it was looked at while it worked");
  await assertInvariants(bench.installation);
});
