// What operators type is read beside the service, within limits, and a session asks only so often.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { checkInThread } from "#actions/config/check-in-thread.ts";
import { limits } from "#domain/limits.ts";
import { inTier } from "../tiers.ts";
import type { Browser, OperatorAnswer } from "./browser.ts";
import { openOperatorStage, type OperatorStage } from "./stage.ts";

/** CPU time of the main thread for a request whose documents take seconds to read; the test's own work is in it. */
const MAIN_CPU_MS_MAX = 400;
const NOTHING_KNOWN = { accounts: new Set<string>(), strategies: new Map(), secrets: new Map() };

let stage: OperatorStage;
before(async () => {
  stage = await openOperatorStage();
  await stage.installation.apply("account: acme");
});
after(async () => await stage?.[Symbol.asyncDispose]());

const asViewer = async (): Promise<Browser> => await stage.holding(await stage.operator("viewer"));

const typed = (...texts: readonly string[]) => ({
  documents: texts.map((text, index) => ({ file: `typed-${index}.yaml`, text })),
});

/** Within the limit as JSON: on one core the parser takes a second for some of them. */
const BOMBS = ["a: [", "- a\n", "#\n", "---\n", "{{{", "!a "].map((unit, index) =>
  index === 0 ? `a: [${"[],".repeat(80_000)}[]]` : unit.repeat(150_000 / unit.length),
);

test("documents that take long are read beside the service: it goes on answering", async () => {
  const browser = await asViewer();
  const small = await browser.send("POST", "/config/check", typed("account: acme"));
  assert.deepEqual([small.status, small.body.problems], [200, []], small.text);
  const before = process.threadCpuUsage();
  const totalBefore = process.cpuUsage();
  for (const path of inTier(["/config/check", "/config/plan"], (each) => each === "/config/plan")) {
    const answer = await browser.send("POST", path, typed(BOMBS[0] ?? ""));
    assert.equal(answer.status, 200, answer.text.slice(0, 500));
    assert.ok(answer.body.problems.length > 0);
  }
  const [main, total] = [process.threadCpuUsage(before), process.cpuUsage(totalBefore)];
  const [mainMs, totalMs] = [main, total].map(({ user, system }) => (user + system) / 1_000) as [
    number,
    number,
  ];
  console.log(`  main thread ${mainMs.toFixed(0)} ms of ${totalMs.toFixed(0)} ms of CPU time`);
  assert.ok(mainMs < MAIN_CPU_MS_MAX, `${mainMs} ms`);
});

test("whatever they are, the answer is the documents' problems, and not too many of them", async () => {
  const browser = await asViewer();
  for (const bomb of inTier(BOMBS.slice(1), (_bomb, index) => index < 2)) {
    const answer = await browser.send("POST", "/config/check", typed(bomb));
    assert.equal(answer.status, 200, answer.text.slice(0, 500));
    assert.ok(answer.body.problems.length <= 1_001);
  }
  const many = await browser.send(
    "POST",
    "/config/check",
    typed(`strategy: x\naccount: acme\nfields: [${"1,".repeat(5_000)}1]`),
  );
  assert.match(many.body.problems.at(-1).message, /^there are \d+ more problems; fix these first$/);
});

test("a request holds 256 KiB of documents", async () => {
  const answer = await (
    await asViewer()
  ).send("POST", "/config/plan", typed("#".repeat(limits.configBodyBytesMax)));
  assert.equal(answer.status, 413, answer.text);
});

test("checking is given up when it takes too much time, or gives too much; the next one is checked as before", async () => {
  const sources = (count: number, text: string) =>
    Array.from({ length: count }, (_, index) => ({ file: `f${index}`, text }));
  const late = await checkInThread("a", sources(4, "- a\n".repeat(260_000)), NOTHING_KNOWN);
  assert.deepEqual(late.checked, []);
  assert.match(
    late.problems[0]?.message ?? "",
    /^checking took (longer than 3 s of CPU time|more than 256 MiB of memory)/,
  );
  const list = `[${Array.from({ length: 490 }, () => '"0123456789"').join(",")}]`;
  const expanding = `blueprint: big\naccount: acme\nnodes:\n  - { id: one, type: input, refKey: one, default: [&a ${list}${", *a".repeat(490)}] }\n  - { id: rows, type: parse, from: one, format: json }\n  - { id: out, type: output, refKey: out, from: rows }`;
  const known = { ...NOTHING_KNOWN, accounts: new Set(["acme"]) };
  const large = await checkInThread("a", sources(1, expanding), known);
  assert.deepEqual(large.checked, []);
  assert.match(large.problems[0]?.message ?? "", /^the documents expand to more than 2000000 characters/);
  const good = await checkInThread("a", sources(1, "account: acme"), NOTHING_KNOWN);
  assert.deepEqual(
    good.checked.map(({ kind, id }) => [kind, id]),
    [["account", "acme"]],
  );
});

test("a session is told when it asks too often, and another is not", async () => {
  const [eager, other] = [await asViewer(), await asViewer()];
  let refused: OperatorAnswer | undefined;
  let sent = 0;
  for (; refused === undefined && sent < limits.operatorCalls.burst * 4; sent += 50) {
    const answers = await Promise.all(Array.from({ length: 50 }, async () => await eager.send("GET", "/me")));
    refused = answers.find(({ status }) => status === 429);
  }
  assert.ok(sent > limits.operatorCalls.burst, `${sent} were answered`);
  assert.ok(refused, "nothing was refused");
  assert.ok(Number(refused.headers["retry-after"]) >= 1);
  assert.equal(refused.body.error.type, "rate_limit_exceeded");
  assert.equal((await other.send("GET", "/me")).status, 200);
});
