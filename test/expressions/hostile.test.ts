import assert from "node:assert/strict";
import { once } from "node:events";
import { readdirSync, readFileSync } from "node:fs";
import { getPriority } from "node:os";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { Worker } from "node:worker_threads";
import { ExpressionError } from "#domain/expression.ts";
import { openEvaluator } from "#expressions/evaluator.ts";
import { watchTurns } from "../event-loop.ts";
import { inTier, testInAll } from "../tiers.ts";

const isLinux = process.platform === "linux";

/** Doubles a text `n` times; the letters keep V8 from storing it in one byte each. */
const DOUBLE = "$double := function($s, $n){ $n = 0 ? $s : $double($s & $s, $n - 1) }";

const HOSTILE: readonly (readonly [string, RegExp])[] = [
  ["($f := function($x){ $f($x) }; $f(1))", /took longer than 1 s/],
  ["($f := function($x){ 1 + $f($x) }; $f(1))", /recurses too deeply|took longer/],
  ["[1..9999999]", /too long/],
  ["($f := function($s){ $f($s & $s) }; $f('x'))", /10000000 characters/],
  [`(${DOUBLE}; $uppercase($double('ü€', 27)))`, /10000000 characters/],
  ["$pad('x', 4e8)", /10000000 characters/],
  ["$pad('xy', -4e8)", /10000000 characters/],
  [`(${DOUBLE}; $replace($double('x', 22), 'x', $double('y', 20)))`, /too long/],
  [`(${DOUBLE}; $length($replace($double('x', 12), 'x', $double('y', 12))))`, /10000000 characters/],
  [`(${DOUBLE}; $join([$double('x', 23), $double('x', 23)]))`, /10000000 characters/],
  [`(${DOUBLE}; $split($double('x', 22), ''))`, /list of more/],
  ["($f := function($s, $n){ $n = 0 ? $s : $f($append($s, $s), $n - 1) }; $f([1, 2], 26))", /too long/],
  [
    "($f := function($s, $n){ $n = 0 ? $s : $f({'a': $s, 'b': $s}, $n - 1) }; $f('x', 40))",
    /characters of JSON/,
  ],
  [
    "($f := function($s, $n){ $n = 0 ? $s : $f({'a': $s, 'b': $s}, $n - 1) }; $string($f('x', 40)))",
    /characters of JSON/,
  ],
  [
    "($f := function($s, $n){ $n = 0 ? $s : $f([[$s], [$s]], $n - 1) }; $count({'a': $f('x', 40)}.*))",
    /took longer|memory/,
  ],
  ["(function($f){ {'then': $f} })(function($resolve){ 1 })", /never ends|took longer/],
  ["[$error('first'), ($f := function($x){ $f($x) }; $f(1))]", /first/],
  ["$eval('($f := function(){ $f() }; $f())')", /\$eval isn't available/],
  ["($e := $lookup({'e': 'eval'}, 'e'); $e('1'))", /not a function/],
  ["$formatInteger(1e308, 'I')", /recurses too deeply/],
  ["$sort([1..900000], function($a, $b){ $a < $b })", /took longer|memory/],
];

const isFirstOfItsReason = ([, reason]: (typeof HOSTILE)[number], index: number): boolean =>
  HOSTILE.findIndex(([, other]) => other.source === reason.source) === index;

const AT_ONCE = 4;
/** Slow threads stand back: 3 s on a quiet machine were 160 s at a load of 43. */
const PATIENT = { timeout: 480_000 };

test(
  "a hostile expression fails with a reason, the process and everyone else's work go on",
  PATIENT,
  async (t) => {
    const killed: string[] = [];
    const evaluator = openEvaluator({ onKill: (reason) => killed.push(reason) });
    t.after(() => evaluator.close());
    await evaluator.bind({}).evaluate("1");
    const turns = watchTurns();
    const attackWith = async ([source, wanted]: (typeof HOSTILE)[number]): Promise<void> => {
      // As a run of its own: one run has one task at a time in the slow lane.
      const attack = evaluator
        .bind({})
        .evaluate(source)
        .then(
          (value) => assert.fail(`${source} gave ${JSON.stringify(value)?.slice(0, 50)}`),
          (error: unknown) => error,
        );
      const others = Array.from({ length: 5 }, (_, index) =>
        evaluator.bind({ mine: 1 }).evaluate("$mine + $n", { variables: { n: index } }),
      );
      assert.deepEqual(await Promise.all(others), [1, 2, 3, 4, 5], source);
      const error = await attack;
      assert.ok(error instanceof ExpressionError, source);
      assert.equal(error.source, source);
      assert.match(error.message.slice(source.length), wanted, source);
    };
    const attacks = inTier(HOSTILE, isFirstOfItsReason);
    for (let at = 0; at < attacks.length; at += AT_ONCE)
      await Promise.all(attacks.slice(at, at + AT_ONCE).map(attackWith));
    const longest = turns.longestMs();
    t.diagnostic(`a turn of the event loop took at most ${longest.toFixed(1)} ms of CPU time`);
    assert.ok(longest < 500, `${longest} ms in one turn of the event loop`);
    assert.ok(killed.length > 0);
  },
);

test("a regular expression that backtracks forever elsewhere is answered at once", async (t) => {
  const evaluator = openEvaluator();
  t.after(() => evaluator.close());
  const bound = evaluator.bind({});
  await bound.evaluate("1");
  const cpuBefore = process.cpuUsage();
  const text = `${"a".repeat(40)}!`;
  assert.equal(await bound.evaluate("$contains($, /^(a+)+$/)", { root: text }), false);
  assert.equal(await bound.evaluate("$replace($, /(a|a)*b/, '')", { root: text }), text);
  // Elsewhere ten seconds for each.
  const { user, system } = process.cpuUsage(cpuBefore);
  assert.ok(user + system < 5e6, `${user + system} µs`);
});

test("what no check inside the thread sees is ended from outside", PATIENT, async (t) => {
  const killed: string[] = [];
  const evaluator = openEvaluator({
    timeoutMs: 300,
    onKill: (reason, source) => killed.push(`${reason} ${source}`),
  });
  t.after(() => evaluator.close());
  const bound = evaluator.bind({});
  // One call of a built-in function that takes seconds; the loop of the interpreter never runs.
  const source = "$distinct([1..200000])";
  await assert.rejects(bound.evaluate(source), /took longer than 0.3 s/);
  assert.deepEqual(killed, [`time ${source}`]);
  assert.equal(await bound.evaluate("1 + 1"), 2);
});

test("a thread that fills up is ended, and the process lives", PATIENT, async (t) => {
  const killed: string[] = [];
  const evaluator = openEvaluator({
    // No limit of this test: how soon the memory is full depends on what else the machine does.
    timeoutMs: 100_000,
    memoryMiB: 32,
    onKill: (reason) => killed.push(reason),
  });
  t.after(() => evaluator.close());
  const bound = evaluator.bind({});
  const source =
    "($f := function($l, $n){ $n = 0 ? $l : $f({'a': $l, 'b': [1..500000]}, $n - 1) }; $f(1, 2000).b[0])";
  const others = bound.evaluateBatch(
    ["$ + 1"],
    Array.from({ length: 100 }, (_, index) => ({ root: index })),
  );
  await assert.rejects(bound.evaluate(source), /needed more than 32 MiB of memory/);
  assert.deepEqual(killed, ["memory"]);
  assert.equal(
    (await others).every(([cell], index) => cell?.ok === true && cell.value === index + 1),
    true,
  );
});

test(
  "the first evaluation that takes too long is the last one of its batch, and says so",
  PATIENT,
  async (t) => {
    const evaluator = openEvaluator({ timeoutMs: 200 });
    t.after(() => evaluator.close());
    const bound = evaluator.bind({});
    const rows = Array.from({ length: 60 }, (_, index) => ({ root: { slow: index >= 10, index } }));
    const endless = "($f := function(){ $f() }; slow ? $f() : index)";
    // One call of a built-in function, which nothing but the end of its thread stops.
    const native = "slow ? $count($distinct([1..200000])) : index";
    for (const source of [endless, native]) {
      const answers = await bound.evaluateBatch([source, "index + $sum([0])"], rows);
      const failed = answers.flat().find((cell) => !cell.ok);
      assert.match(JSON.stringify(answers[10]?.[0]), /took longer than 0.2 s/);
      assert.equal(failed, answers[10]?.[0]);
      const after = answers.slice(11).flat();
      assert.ok(after.every((cell) => !cell.ok && cell.isExhausted && cell.message.includes("not tried")));
      assert.deepEqual(await bound.evaluateBatch(["index + $sum([0])"], rows.slice(0, 1)), [
        [{ ok: true, value: 0 }],
      ]);
    }
  },
);

testInAll(
  "ten slow ones beside a quick one that is known",
  "what is quick waits for no more than a moment of each that is slow",
  PATIENT,
  async (t) => {
    const evaluator = openEvaluator({ timeoutMs: 2_000 });
    t.after(() => evaluator.close());
    const quick = evaluator.bind({});
    await quick.evaluate("$sum([1])");
    const attacks = Array.from({ length: 4 }, async (_, index) => {
      const source = `($f := function($x){ $f($x) }; $f(${index}))`;
      await assert.rejects(evaluator.bind({}).evaluate(source), /took longer than 2 s/);
    });
    let over = 0;
    for (const attack of attacks) void attack.then(() => over++);
    // Four evaluations of two seconds each are before it, and none of them has ended when it is answered.
    assert.equal(await quick.evaluate("$sum([1, 2])"), 3);
    assert.equal(over, 0);
    // Those that are known to be slow begin where the slow ones are.
    const again = evaluator.bind({}).evaluate("($f := function($x){ $f($x) }; $f(0))");
    again.catch(() => undefined);
    assert.equal(await quick.evaluate("$sum([2, 2])"), 4);
    assert.equal(over, 0);
    await Promise.all(attacks);
    await assert.rejects(again, /took longer than 2 s/);
  },
);

test("what is known to be quick does not wait while others are tried", PATIENT, async (t) => {
  const evaluator = openEvaluator();
  t.after(() => evaluator.close());
  const bound = evaluator.bind({});
  await bound.evaluate("$sum([1])");
  const answered: string[] = [];
  const endless = Array.from({ length: 10 }, async (_, index) => {
    const hostile = evaluator.bind({});
    const source = `($f := function($x){ $f($x) }; $f("tried ${index}"))`;
    const failing = assert.rejects(hostile.evaluate(source), /took longer|been released/);
    return { hostile, failing };
  });
  const ask = async (source: string): Promise<void> => {
    await bound.evaluate(source);
    answered.push(source);
  };
  // A tenth of a second of each of the ten is before the second one.
  const unknown = ask("$sum([2, 3])");
  await ask("$sum([1])");
  assert.deepEqual(answered, ["$sum([1])"]);
  await unknown;
  for (const each of endless) (await each).hostile.release();
  for (const each of endless) await (await each).failing;
});

test(
  "what takes long has a lower priority, and what is quick keeps its own",
  { skip: !isLinux, ...PATIENT },
  async (t) => {
    const evaluator = openEvaluator();
    t.after(() => evaluator.close());
    const bound = evaluator.bind({});
    await bound.evaluate("$sum([1])");
    assert.deepEqual(loweredThreads(), 0);
    const slow = assert.rejects(bound.evaluate("($f := function(){ $f() }; $f())"), /took longer than 1 s/);
    let most = 0;
    let isOver = false;
    const ended = slow.finally(() => (isOver = true));
    while (!isOver) {
      most = Math.max(most, loweredThreads());
      await sleep(10);
    }
    await ended;
    assert.equal(most, 1);
  },
);

/** Threads of this process that stand back; the nice value is the 19th field. */
function loweredThreads(): number {
  return readdirSync("/proc/self/task").filter((id) => {
    try {
      const [, fields = ""] = readFileSync(`/proc/self/task/${id}/stat`, "utf8").split(") ");
      return Number(fields.split(" ")[16]) > getPriority();
    } catch {
      // It has ended.
      return false;
    }
  }).length;
}

testInAll(
  "slow ones that are released",
  "a slow run has one task under way, and what it asked for is dropped with it",
  PATIENT,
  async (t) => {
    const evaluator = openEvaluator();
    t.after(() => evaluator.close());
    const hostile = evaluator.bind({});
    const endless = "($f := function(){ $f() }; $f())";
    const all = Array.from({ length: 20 }, async () => await hostile.evaluate(endless));
    const outcomes = Promise.allSettled(all);
    await Promise.race(all.map(async (each) => await each.catch(() => undefined)));
    hostile.release();
    const startedAt = process.cpuUsage();
    const reasons = (await outcomes).map((each) =>
      each.status === "rejected" ? String(each.reason) : "none",
    );
    assert.ok(reasons.some((reason) => reason.includes("took longer than 1 s")));
    assert.ok(reasons.filter((reason) => reason.includes("have been released")).length > 10);
    assert.equal(await evaluator.bind({}).evaluate("$sum([1, 1])"), 2);
    const { user } = process.cpuUsage(startedAt);
    assert.ok(user < 10e6, `${user} µs: not all of the twenty went on`);
  },
);

test("a long batch of honest rows is neither ended nor in the way of others", PATIENT, async (t) => {
  const killed: string[] = [];
  const evaluator = openEvaluator({ timeoutMs: 400, onKill: (reason) => killed.push(reason) });
  t.after(() => evaluator.close());
  const bound = evaluator.bind({});
  const others = evaluator.bind({});
  await others.evaluate("1");
  const rows = Array.from({ length: 200 }, (_, index) => ({ root: index }));
  const started = performance.now();
  let done = false;
  const batch = bound
    .evaluateBatch(["$sum($map([1..3000], function($x){ $x * 2 })) + $"], rows)
    .finally(() => (done = true));
  let answers = 0;
  while (!done) {
    assert.equal(await others.evaluate("1 + 1"), 2);
    answers++;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  assert.equal(
    (await batch).every(([cell], index) => cell?.ok === true && cell.value === 9_003_000 + index),
    true,
  );
  assert.ok(performance.now() - started > 800, "the batch is long enough to show something");
  assert.ok(answers > 5, `${answers} answers`);
  assert.deepEqual(killed, []);
});

test("no expression reaches JavaScript's objects or leaves a trace in them", async (t) => {
  const worker = new Worker(new URL("./probe-thread.ts", import.meta.url), { env: {}, execArgv: [] });
  t.after(() => worker.terminate());
  const root =
    '{"__proto__": {"polluted": 1}, "constructor": {"prototype": {"polluted": 1}}, "a": {"b": 1}, "f": {"_jsonata_function": true, "implementation": "x"}}';
  const nothing = [
    ...[
      "$.__proto__.toString",
      "a.constructor",
      "a.__proto__",
      "$string.constructor",
      "($f := function(){ 1 }; $f.environment)",
    ],
    ...[
      "$lookup(a, 'constructor')",
      "$lookup(a, '__proto__')",
      "a.toString",
      "a.hasOwnProperty",
      "'x'.length",
      "/a/.lastIndex",
    ],
  ];
  const anything = [
    ...[
      "$ ~> |$|{'__proto__': {'polluted': 1}}|",
      "{} ~> |$|$$|",
      "{} ~> |$|{'constructor': {'prototype': {'polluted': 1}}}|",
    ],
    ...[
      "$ ~> |`__proto__`|{'polluted': 2}|",
      "$ ~> |a.`__proto__`|{'polluted': 2}|",
      "$ ~> |constructor.prototype|{'polluted': 2}|",
    ],
    ...[
      "$ ~> |$spread($sum).implementation|{'apply': 1}|",
      "$ ~> |$spread($sum).signature|{'validate': 1}|",
      "$ ~> |$match|{'polluted': 1}|",
    ],
    ...[
      "{'__proto__': {'polluted': 1}}.polluted",
      "$merge([{'__proto__': {'polluted': 1}}, {}])",
      "$sift($, function($v, $k){ $k = '__proto__' })",
    ],
    ...[
      "$each($, function($v, $k){ {$k: {'polluted': 1}} })",
      "{ $keys($)[0]: {'polluted': 1} }",
      "a{ '__proto__': {'polluted': 1} }",
      "f()",
      "f.implementation()",
    ],
    ...[
      "[].length",
      "$.constructor.constructor('return process')()",
      "$clone($)",
      "($clone := function($x){ $x }; $ ~> |a|{'b': 2}|)",
      "$map($keys($), function($k){ {$k: 1} })",
    ],
  ];
  for (const source of [...nothing, ...anything]) {
    worker.postMessage({ source, root });
    const [answer] = (await once(worker, "message")) as [
      { result: { ok: boolean; text?: string }; unchanged: boolean; polluted: boolean },
    ];
    assert.equal(answer.unchanged, true, source);
    assert.equal(answer.polluted, false, source);
    if (nothing.includes(source))
      assert.equal(answer.result.text, undefined, `${source}: ${JSON.stringify(answer.result)}`);
  }
});
