import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { test } from "node:test";
import { analyseExpression, analyseTemplate, BUILT_IN_FUNCTIONS } from "#expressions/analyse.ts";

/** `name.path.path` of every free variable, sorted. */
function free(source: string): string[] {
  const analysis = analyseExpression(source);
  assert.ok(analysis.ok, `${source}: ${JSON.stringify(analysis)}`);
  return analysis.uses.map(({ name, path }) => [name, ...path].join(".")).sort();
}

const FREE: readonly (readonly [string, ...string[]])[] = [
  ["1 + 1"],
  ["$.a & $$.b"],
  ["due_date >= '2020-01-01'"],
  ["$inputs", "inputs"],
  ["$inputs.period.from", "inputs.period.from"],
  ["$inputs.`odd name`.'quoted'.x", "inputs.odd name.quoted.x"],
  ["$inputs.list[0].x", "inputs.list"],
  ["$inputs[0].x", "inputs"],
  ["$inputs.*.x", "inputs"],
  ["$inputs.list[]", "inputs.list"],
  ["$inputs.list[$v > $metadata.min]", "inputs.list", "metadata.min", "v"],
  ["($inputs).period", "inputs"],
  ["items.$price", "price"],
  ["$sum(lines.(qty * $rate))", "rate"],
  ["$unknown(1)", "unknown"],
  ["$map(a, $string)"],
  ["$map(a, $mine)", "mine"],
  ["a ~> $trim ~> $mine", "mine"],
  ["$substring(?, $from, 2)", "from"],
  ["$counts.invalid > 0 and $not($isValid)", "counts.invalid", "isValid"],
  // Blocks
  ["($x := 1; $x + $y)", "y"],
  ["($x := $x + 1; $x)", "x"],
  ["(($x := 1); $x)", "x"],
  ["($y; $y := 1)", "y"],
  ["$x := $y", "y"],
  ["[$x := 1, $x]"],
  ["($f := function($n){ $n = 0 ? 1 : $n * $f($n - 1) }; $f(5))"],
  ["($f := function(){ $later }; $later := 1; $f())"],
  ["($f := function(){ ($inner := 1) }; $f() + $inner)", "inner"],
  // Functions
  ["function($a, $b){ $a + $b + $c }", "c"],
  ["λ($a){ $a }($b)", "b"],
  ["$map(a, function($v, $i){ $v & $i & $w })", "w"],
  ["function($a)<n:n>{ $g($a) }", "g"],
  // Conditions and defaults
  ["$a ? $b : $c", "a", "b", "c"],
  ["$a ?: $b", "a", "b"],
  ["$a.x ?? $b.y", "a.x", "b.y"],
  // Paths that bind
  ["books@$b.authors@$a[$b.id = $a.book].{ 'n': $a.name, 'o': $o }", "o"],
  ["books#$i[$i < 3].{ 'i': $i, 'j': $j }", "j"],
  ["books[price > 1]#$i.$i"],
  ["(books@$b.title; $b)", "b"],
  ["books@$b{ $b.kind: $count($b) }"],
  ["books@$b^($b.price)"],
  ["a^(>$key, <b)", "key"],
  // Constructors, grouping, transforms
  ["{ $k: $v, 'x': [$w, 1..$n] }", "k", "n", "v", "w"],
  ["orders{ $kind: $sum(price) }", "kind"],
  ["$inputs{ 'a': $b }", "b", "inputs"],
  ["$ ~> |items|{ 'total': price * $rate }, $gone|", "gone", "rate"],
  ["items.%.$up", "up"],
  ["-$n", "n"],
  ["'$no' & \"$no\" & /\\$no/.match /* $no */ & `$no`"],
];

test("the free variables of every kind of expression are found, and no bound ones", () => {
  for (const [source, ...names] of FREE) assert.deepEqual(free(source), names.sort(), source);
});

test("a variable's position is its `$` in the source", () => {
  const source = "1 + $inputs.a & ($x := $meta; $x)";
  const analysis = analyseExpression(source);
  assert.ok(analysis.ok);
  assert.deepEqual(
    analysis.uses.map(({ name, position }) => [name, position]),
    [
      ["inputs", source.indexOf("$inputs")],
      ["meta", source.indexOf("$meta")],
    ],
  );
});

test("the list of built-in functions is jsonata's own", async () => {
  const code = await readFile(createRequire(import.meta.url).resolve("jsonata"), "utf8");
  const bound = [...code.matchAll(/(?:staticFrame|environment)\.bind\('(\w+)', defineFunction/g)].map(
    (match) => match[1],
  );
  assert.deepEqual(new Set(bound), BUILT_IN_FUNCTIONS);
});

test("what doesn't compile is refused with its place", () => {
  const cases: readonly (readonly [string, RegExp, number])[] = [
    ["a +", /Unexpected end/, 3],
    ["", /Unexpected end/, 0],
    ["a b", /Syntax error/, 3],
    ["'abc", /quote/, 4],
    ["$contains(a, /(?=x)/)", /RE2/, 13],
    ["$contains(a, /(a)\\1/)", /RE2/, 13],
    ["$contains(a, /a[/)", /regular expression/i, 0],
    ["1 + $eval('1')", /\$eval/, 4],
    ["$map(a, $eval)", /\$eval/, 8],
    ["x".repeat(20_001), /20000 characters/, 20_000],
    ["(".repeat(9_000) + ")".repeat(9_000), /nests too deeply/, 0],
  ];
  for (const [source, message, position] of cases) {
    const analysis = analyseExpression(source);
    assert.ok(!analysis.ok, source.slice(0, 40));
    assert.match(analysis.message, message);
    if (!/regular/.test(analysis.message) || position > 0)
      assert.equal(analysis.position, position, source.slice(0, 40));
  }
});

test("nested defaults, which double the tree at each level, are refused before they are parsed", () => {
  const cpuBefore = process.threadCpuUsage();
  const nested = analyseExpression("(".repeat(2_000) + "a" + " ?? b)".repeat(2_000));
  assert.ok(!nested.ok && /\?\?/.test(nested.message));
  const { user, system } = process.threadCpuUsage(cpuBefore);
  assert.ok(user + system < 500_000, `${user + system} µs`);
  assert.deepEqual(free(Array.from({ length: 200 }, (_, index) => `a${index}`).join(" ?? ")), []);
  assert.deepEqual(
    free(`{${Array.from({ length: 200 }, (_, index) => `"k${index}": (x) ?? (y ?: $z)`).join(",")}}`).length,
    200,
  );
});

test("every expression of a template is found, at any depth, with its place", () => {
  const found = analyseTemplate({
    url: "/invoices/{{ id }}?from={{ $inputs.from }}",
    list: ["plain", ["{{ $a }}"], 7, null],
    "{{ key }}": true,
    bad: "{{ 1 +",
    worse: "x {{ 1 + }}",
  });
  assert.deepEqual(
    found.map(({ path, expression, offset, analysis }) => [path.join("/"), expression, offset, analysis.ok]),
    [
      ["url", "id", 13, true],
      ["url", "$inputs.from", 27, true],
      ["list/1/0", "$a", 3, true],
      ["bad", "{{ 1 +", 0, false],
      ["worse", "1 +", 5, false],
    ],
  );
});
