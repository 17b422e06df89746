// Hostile Blueprints and targets: the run fails and names its node; other runs and the API go on beside it. docs/decisions/0016. How
// soon, and how little they notice, by the clock: `hostile-clock.pg.test.ts`.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, before, test, type TestContext } from "node:test";
import {
  atOnce,
  attackWith,
  BOMBS,
  EXPRESSIONS,
  oneByOne,
  openHostileStage,
  type Attack,
  type HostileStage,
  type How,
} from "./hostile-stage.ts";
import { inTier, testInAll } from "../tiers.ts";

/** CPU time of the service for each attack that comes to its limit of a second, with the good runs beside it. */
const CPU_SECONDS = 4;
/** Room for machines of all kinds. */
const MARGIN = 5;

let stage: HostileStage;

before(async () => {
  stage = await openHostileStage();
  await stage.goodRun();
});
after(async () => await stage?.[Symbol.asyncDispose]());

/** Time and memory; a body that never ends, depth, a file that unpacks to too much, pages without an end. */
const REPRESENTATIVES = ["endless", "join", "endless-body", "nested", "sheet", "pages"];
const isRepresentative = ({ name }: Attack): boolean => REPRESENTATIVES.includes(name);

async function assertUnnoticed(t: TestContext, attacks: readonly Attack[], how: How): Promise<void> {
  const { cpuSeconds, goodRuns, requests } = await attackWith(stage, t, attacks, how);
  // NaN where no /proc says it.
  assert.ok(!(cpuSeconds > MARGIN * CPU_SECONDS * attacks.length), `${cpuSeconds} s`);
  // One after the other: did they queue behind the hostile ones, there would be one or two.
  assert.ok(goodRuns >= 4, `${goodRuns} good runs`);
  assert.ok(requests >= 4, `${requests} requests`);
}

testInAll(
  "hostile runs at once, which is harder on others",
  "one hostile run at a time fails, and others go on",
  { timeout: 400_000 },
  async (t) => await assertUnnoticed(t, [...EXPRESSIONS, ...BOMBS], oneByOne),
);

test(
  "hostile expressions fail their runs and nobody else's",
  { timeout: 400_000 },
  async (t) => await assertUnnoticed(t, inTier(EXPRESSIONS, isRepresentative), atOnce),
);

test("bombs of a target fail their runs and nobody else's", { timeout: 400_000 }, async (t) => {
  const sentBefore = stage.target.sent.get("/endless") ?? 0;
  await assertUnnoticed(t, inTier(BOMBS, isRepresentative), atOnce);
  const sent = (stage.target.sent.get("/endless") ?? 0) - sentBefore;
  assert.ok(sent < 40_000_000, "an endless body is cut off, not read");
});

test("tricks with prototypes, entities and regular expressions do nothing", async () => {
  const resultOf = async (name: string): Promise<unknown> => {
    const id = await stage.trigger(name);
    const { body } = await stage.caller.waitForRun(id, 120_000);
    assert.equal(body.status, "completed", `${name}: ${await stage.failureOf(id)}`);
    const { text } = await stage.caller.get(`/blueprint-runs/${id}/results?deliveryMethod=direct`);
    return (JSON.parse(text) as { results: { out: { records: { data: unknown }[] } } }).results.out.records[0]
      ?.data;
  };
  assert.equal(JSON.stringify(await resultOf("proto")), '{"constructor":"c","toString":"t","valueOf":1}');
  assert.equal(
    JSON.stringify(await resultOf("names")),
    '{"__proto__":{"polluted":1},"constructor":"c","toString":"t"}',
  );
  assert.deepEqual(await resultOf("entities"), { text: "&l9;" });
  assert.deepEqual(await resultOf("regex"), { n: 0 });
  assert.deepEqual(await resultOf("function"), {});
  assert.equal(Reflect.get({}, "polluted"), undefined);
});

testInAll(
  "the watch on threads in expressions/hostile",
  "threads that were ended give everything back",
  {},
  async () => {
    const now = (what: string): number =>
      Number(
        new RegExp(`${what}:\\s+(\\d+)`).exec(
          readFileSync(`/proc/${stage.service.child.pid}/status`, "utf8"),
        )?.[1],
      );
    const before = { threads: now("Threads"), rssMiB: now("VmRSS") / 1_024 };
    for (let round = 0; round < 2; round++)
      await Promise.all(
        ["endless", "recursion", "markup", "sheet"].map(async (name) => {
          const { body } = await stage.caller.waitForRun(await stage.trigger(name), 300_000);
          assert.equal(body.status, "failed");
        }),
      );
    await stage.goodRun();
    const afterwards = { threads: now("Threads"), rssMiB: now("VmRSS") / 1_024 };
    assert.ok(afterwards.threads <= before.threads + 4, JSON.stringify({ before, afterwards }));
    assert.ok(afterwards.rssMiB < before.rssMiB * 1.5 + 100, JSON.stringify({ before, afterwards }));
  },
);
