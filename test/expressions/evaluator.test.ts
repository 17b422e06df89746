import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { after, test } from "node:test";
import fc from "fast-check";
import { ExpressionError } from "#domain/expression.ts";
import { limits } from "#domain/limits.ts";
import type { Json } from "#domain/json.ts";
import { openEvaluator } from "#expressions/evaluator.ts";

const evaluator = openEvaluator();
after(() => evaluator.close());
const bound = evaluator.bind({
  inputs: { period: { from: "2024-01-01" }, list: [1, 2], none: [] },
  metadata: { note: "{{ $inputs }}" },
});

async function reason(source: string, root?: Json, from = bound): Promise<string> {
  const error = await from.evaluate(source, { root }).then(
    (value) => assert.fail(`${source} gave ${JSON.stringify(value)}`),
    (thrown: unknown) => thrown,
  );
  assert.ok(error instanceof ExpressionError);
  assert.equal(error.source, source);
  return error.message.slice(error.message.indexOf("`: ") + 3);
}

test("an expression sees its root, its binding and its scope, the nearest first", async () => {
  assert.equal(await bound.evaluate("$inputs.period.from"), "2024-01-01");
  assert.equal(await bound.evaluate("a.b", { root: { a: { b: 7 } } }), 7);
  assert.deepEqual(await bound.evaluate("$", { root: [1, [2]] }), [1, [2]]);
  assert.equal(await bound.evaluate("$index + 1", { variables: { index: 4 } }), 5);
  assert.equal(await bound.evaluate("$inputs", { variables: { inputs: "mine" } }), "mine");
  assert.equal(await bound.evaluate("missing.field"), undefined);
  assert.equal(await bound.evaluate("null"), null);
  assert.equal(await bound.evaluate("$exists($process) or $exists($globalThis) or $exists($$)"), false);
});

test("results are plain JSON, or an error that says why not", async () => {
  assert.deepEqual(await bound.evaluate("$inputs.list.{ 'n': $, 'gone': missing }"), [{ n: 1 }, { n: 2 }]);
  assert.deepEqual(await bound.evaluate("$match('ab', /a(x)?/)"), { match: "a", index: 0, groups: [null] });
  assert.equal(await bound.evaluate("-0"), 0);
  for (const source of [
    "$sum",
    "function($x){ $x }",
    "{'f': $sum}",
    "{'r': $split ~> $join}",
    "$substring(?, 1)",
  ]) {
    assert.equal(await reason(source), "produces a function instead of a value", source);
  }
  for (const source of ["1/0", "{'n': 0/0}", "-1/0"])
    assert.match(await reason(source), /JSON can't represent/, source);
  assert.match(await reason("$ ~> |$|{'me': $}|", { a: 1 }), /circular/);
});

test("any JSON value passes through unchanged, whatever its keys", async () => {
  await fc.assert(
    fc.asyncProperty(fc.jsonValue({ maxDepth: 4 }), async (value) => {
      const text = JSON.stringify(value);
      const through = await bound.evaluate("{'it': $v}", { variables: { v: JSON.parse(text) as Json } });
      assert.equal(JSON.stringify(through), `{"it":${text}}`);
    }),
    { numRuns: 200 },
  );
  const odd = JSON.parse(
    '{"__proto__":{"a":1},"constructor":2,"toString":[],"then":3,"length":4,"hasOwnProperty":5}',
  ) as Json;
  assert.equal(JSON.stringify(await bound.evaluate("$", { root: odd })), JSON.stringify(odd));
  assert.equal(
    await bound.evaluate("constructor + length + then + hasOwnProperty + `__proto__`.a", { root: odd }),
    15,
  );
  assert.equal(
    JSON.stringify(await bound.evaluate("$merge([$, {'b': 1}])", { root: odd })),
    `${JSON.stringify(odd).slice(0, -1)},"b":1}`,
  );
});

test("a template that is one expression keeps its type, and one that gives nothing leaves its key out", async () => {
  const root = { n: 1.5, t: true, s: "x", l: [1, { a: null }] };
  assert.deepEqual(
    await bound.render(
      {
        n: "{{ n }}",
        t: "{{t}}",
        l: "{{ l }}",
        nil: "{{ null }}",
        gone: "{{ missing }}",
        list: ["{{ s }}", "{{ missing }}", 3, null, ["{{ n }}"]],
        text: "a{{ n }}b{{ t }}c{{ s }}d{{ missing }}e{{ l }}f{{ null }}",
        " {{ n }}": "{{ n }} ",
        plain: "}} {",
      },
      { root },
    ),
    {
      n: 1.5,
      t: true,
      l: [1, { a: null }],
      nil: null,
      list: ["x", 3, null, [1.5]],
      text: 'a1.5btruecxde[1,{"a":null}]fnull',
      " {{ n }}": "1.5 ",
      plain: "}} {",
    },
  );
  assert.equal(await bound.render("{{ missing }}"), undefined);
  assert.equal(await bound.render("{{ missing }}!"), "!");
  assert.equal(await bound.render('{{ "{{" }} literal }}'), "{{ literal }}");
});

test("what is inserted is never a template: payloads come out as they went in", async () => {
  const payloads = [
    "{{ 7 * 7 }}",
    "${7*7}",
    "#{7*7}",
    "<%= 7*7 %>",
    "{{constructor.constructor('return 1')()}}",
    "$eval('1')",
    '{{ "',
    "{% 1 %}",
  ];
  for (const payload of payloads) {
    assert.equal(await bound.render("{{ p }}", { root: { p: payload } }), payload);
    assert.equal(await bound.render("a {{ p }} b", { root: { p: payload } }), `a ${payload} b`);
  }
  assert.equal(await bound.render("{{ $metadata.note }}"), "{{ $inputs }}");
});

test("a template without {{ needs no thread, and an unclosed one says where", async () => {
  const closed = openEvaluator({ threads: 0 });
  const template = { a: ["}}", 1], b: { c: "{ {" } };
  assert.deepEqual(await closed.bind({}).render(template), template);
  await assert.rejects(bound.render({ a: "xy {{ n" }), /ExpressionError.*never closed.*character 3/s);
});

test("a batch answers every row and every expression, and a bad row fails alone", async () => {
  const rows = [
    { root: { t: "1" } },
    { root: { t: "x" } },
    { root: {} },
    { root: { t: "4" }, variables: { index: 3 } },
  ];
  const answers = await bound.evaluateBatch(["$number(t)", "$index", "1 +"], rows);
  assert.deepEqual(
    answers.map((row) => row.slice(0, 2).map((cell) => (cell.ok ? (cell.value ?? "nothing") : "failed"))),
    [
      [1, "nothing"],
      ["failed", "nothing"],
      ["nothing", "nothing"],
      [4, 3],
    ],
  );
  for (const row of answers) assert.match(JSON.stringify(row[2]), /doesn't compile/);
  assert.deepEqual(await bound.evaluateBatch([], rows), [[], [], [], []]);
  assert.deepEqual(await bound.evaluateBatch(["1"], []), []);
});

test("an error names the expression, the place and the reason, and never a value", async () => {
  const canary = "canary-7d1f";
  const root = { s: canary, o: { [canary]: canary }, l: [canary, 1], n: 12345.678 };
  const sources = [
    ...[
      "s + 1",
      "1 - s",
      "-s",
      "s < 1",
      "s < o",
      "o > 1",
      "[s..3]",
      "[1..s]",
      "l^($)",
      "o^($)",
      "s()",
      "o()",
      "l()",
      "o.x.y(s)",
    ],
    ...[
      "$number(s)",
      "$sum(l)",
      "$sum([s])",
      "$max(s)",
      "$toMillis(s)",
      "$toMillis(s, s)",
      "$fromMillis(1, s)",
      "$formatNumber(1, s)",
    ],
    ...[
      "$formatBase(1, n)",
      "$formatInteger(1, s)",
      "$parseInteger(s, s)",
      "$sqrt(-n)",
      "$power(n, n)",
      "$error(s)",
      "$assert(false, s)",
    ],
    ...[
      "$error('no ' & s)",
      "$decodeUrl('%' & s)",
      "$encodeUrl(s & '\uD800')",
      "$single(l)",
      "$replace(s, '', s)",
      "$replace(s, /c/, function(){ o })",
    ],
    ...[
      "$split(s, s, -n)",
      "$match(s, /c/, -n)",
      "{ o: 1 }",
      "{ s: 1, 'canary-' & '7d1f': 2 }",
      "l{ $: $, 'x': 1 }",
      "$lookup(s)",
      "$reduce(l, function($a){ $a })",
    ],
    ...[
      "$ ~> |$|s|",
      "$ ~> |$|{}, o|",
      "s ~> o",
      "$contains(s, function($x){ o })",
      "$sort(l)",
      "$merge(s)",
      "$spread(1) + s",
      "$eval(s)",
      "$join(l)",
    ],
  ];
  let failed = 0;
  for (const source of sources) {
    const error: unknown = await bound.evaluate(source, { root }).then(
      () => undefined,
      (thrown: unknown) => thrown,
    );
    if (error === undefined) continue;
    assert.ok(error instanceof ExpressionError, source);
    failed++;
    const message = error.message.slice(`expression \`${source}\`: `.length);
    assert.ok(error.message.startsWith(`expression \`${source}\`: `), error.message);
    assert.ok(
      !message.includes("canary") && !message.includes("7d1f") && !message.includes("12345"),
      message,
    );
    const [[cell]] = (await bound.evaluateBatch([source], [{ root }])) as [
      [{ ok: boolean; message: string }],
    ];
    assert.equal(cell.message, error.message);
  }
  assert.ok(failed > 40, `${failed} of ${sources.length} failed`);
});

test("an author's own message is shown when it stands in the expression", async () => {
  assert.match(await reason("$error('No invoices')"), /^No invoices \(at character \d+\)$/);
  assert.match(await reason("$assert(1 = 2, 'Not equal')"), /^Not equal/);
  assert.match(await reason("$error('No ' & $)", "secret"), /^\$error was called/);
  assert.match(await reason("1 + 'a'"), /^the right side of \+ must be a number \(at character 3\)$/);
  assert.match(await reason("$number('abc')"), /^a value can't be converted to a number/);
});

test("regular expressions are RE2's and work as jsonata's do", async () => {
  const root = { t: "a1b22 c333 😀d4\nx5" };
  assert.deepEqual(await bound.evaluate("$match(t, /[a-z](\\d+)/).groups", { root }), [
    "1",
    "22",
    "333",
    "4",
    "5",
  ]);
  assert.deepEqual(await bound.evaluate("$match(t, /d\\d/).index", { root }), root.t.indexOf("d4"));
  assert.equal(
    await bound.evaluate("$replace(t, /([a-z])(\\d+)/, '$2$1', 2)", { root }),
    "1a22b c333 😀d4\nx5",
  );
  assert.deepEqual(await bound.evaluate("$split('a, b;c', /[,;]\\s*/)"), ["a", "b", "c"]);
  assert.equal(
    await bound.evaluate(
      "$contains('ABC', /b/i) and $contains('a\\nb', /^b/m) and $not($contains('ab', /^b/))",
    ),
    true,
  );
  assert.equal(await bound.evaluate("$match('abc', /b/).match ?? 'none'"), "b");
  assert.equal(await bound.evaluate("$match('abc', /x/).match ?? 'none'"), "none");
  assert.match(await reason("$replace('abc', /x*/, '-')"), /matches the empty string/);
});

test("base64encode refuses characters whose bytes jsonata would truncate", async () => {
  // In a login it would be another password.
  assert.match(
    await reason("$base64encode('s3cret €')"),
    /base64encode accepts only characters up to U\+00FF/,
  );
  assert.equal(await bound.evaluate("$base64encode('ä')"), "5A==");
});

test("bindings don't see each other, and nothing stays behind in the thread", async () => {
  const others = Array.from({ length: 40 }, (_, index) =>
    evaluator.bind({ [`mine${index}`]: index, who: index }),
  );
  const seen = await Promise.all(
    others.flatMap((other, index) => [
      other.evaluate("$who"),
      other.evaluate(`$mine${(index + 1) % 40}`),
      other.evaluate("($who := 'changed'; $leak := $who; $leak)"),
    ]),
  );
  for (const [index, value] of seen.entries()) {
    assert.equal(value, [Math.floor(index / 3), undefined, "changed"][index % 3]);
  }
  assert.equal(await others[0]?.evaluate("$who"), 0);
  await bound.evaluate("$leak := 5");
  assert.equal(await bound.evaluate("$leak"), undefined);
  for (const other of others) other.release();
  await assert.rejects(() => Promise.resolve(others[0]?.evaluate("1")), /still bound/);
  assert.equal(await bound.evaluate("$inputs.list[0]"), 1);
});

test("one evaluation can't change what the next one reads", async () => {
  assert.deepEqual(await bound.evaluate("$inputs.none{ 'a': 1 }"), { a: 1 });
  assert.equal(await bound.evaluate("$count($inputs.none)"), 0);
  assert.match(await reason("$inputs.period()"), /not a function/);
  assert.deepEqual(await bound.evaluate("$inputs.period"), { from: "2024-01-01" });
  assert.deepEqual(await bound.evaluate("$inputs.list[]"), [1, 2]);
  assert.match(await reason("$ ~> |$inputs.period|{'from': 'x'}|", {}), /transform/);
  assert.match(await reason("$ ~> |$sum|{'implementation': 1}|", {}), /transform/);
  assert.match(await reason("($f := function(){ 1 }; $ ~> |$f|{}, '_jsonata_lambda'|)", {}), /transform/);
  assert.equal(await bound.evaluate("$sum([$inputs.period.from = '2024-01-01' ? 1 : 0, 1])"), 2);
  const root = { a: [{ b: 1 }, { b: 2, c: 3 }] };
  assert.deepEqual(await bound.evaluate("$ ~> |a|{'d': b * 2}, 'c'|", { root }), {
    a: [
      { b: 1, d: 2 },
      { b: 2, d: 4 },
    ],
  });
  const [cells] = await bound.evaluateBatch(["$ ~> |a|{'b': 9}|", "a.b"], [{ root }]);
  assert.deepEqual(cells?.[1], { ok: true, value: [1, 2] });
});

test("large constructors and groupings aren't taken for recursion", async () => {
  assert.equal(
    await bound.evaluate("$count([1..5000].{ 'k': $string($) }{ k: $count($) } ~> $keys())"),
    5_000,
  );
  assert.equal(
    await bound.evaluate(`$count([${Array.from({ length: 2_000 }, () => "(1)").join(",")}])`),
    2_000,
  );
});

test("threads that wait keep no process alive, and close() ends those that work", async () => {
  const url = new URL("../../src/expressions/evaluator.ts", import.meta.url).href;
  const idle = `const { openEvaluator } = await import("${url}");
    const value = await openEvaluator({ threads: 2 }).bind({}).evaluate("1 + 1"); console.log(value);`;
  assert.deepEqual(await runScript(idle), { code: 0, out: "2\n" });
  const closing = `const { openEvaluator } = await import("${url}");
    const evaluator = openEvaluator({ timeoutMs: 60_000 });
    const bound = evaluator.bind({}); await bound.evaluate("1");
    const endless = bound.evaluate("($f := function(){ $f() }; $f())").catch((error) => console.log(error.message));
    await new Promise((resolve) => setTimeout(resolve, 50));
    await evaluator.close(); await endless;
    await bound.evaluate("1").catch((error) => console.log(error.message));`;
  const line = "the expression evaluator is closed\n";
  assert.deepEqual(await runScript(closing), { code: 0, out: line + line });
});

function runScript(code: string): Promise<{ code: number | null; out: string }> {
  return new Promise((resolve) => {
    const child = spawn(process.execPath, ["--input-type=module", "-e", code], {
      stdio: ["ignore", "pipe", "inherit"],
      timeout: 100_000,
    });
    let out = "";
    child.stdout.on("data", (chunk: Buffer) => (out += chunk.toString()));
    child.on("close", (exit) => resolve({ code: exit, out }));
  });
}

test("20,000 records of three fields pass in batches", async (t) => {
  const rows = Array.from({ length: 20_000 }, (_, index) => ({
    root: {
      number: `INV-${index}`,
      total: String(index * 1.5),
      due_date: "2024-05-01",
      vendor: { name: "Acme", id: index },
    },
    variables: { index },
  }));
  const sources = ["number", "$number(total)", "vendor.name & ' ' & due_date"];
  const cpuBefore = process.cpuUsage();
  for (let at = 0; at < rows.length; at += limits.recordBatchSizeMax) {
    const answers = await bound.evaluateBatch(sources, rows.slice(at, at + limits.recordBatchSizeMax));
    assert.deepEqual(answers[0]?.[1], { ok: true, value: at * 1.5 });
  }
  const { user, system } = process.cpuUsage(cpuBefore);
  const perSecond = Math.round(20_000 / ((user + system) / 1e6));
  t.diagnostic(`${perSecond} records a second of CPU time`);
  assert.ok(perSecond > 1_000);
});
