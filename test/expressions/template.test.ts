import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { parseTemplate, renderParts } from "#expressions/template.ts";

function expressions(text: string): string[] {
  const parsed = parseTemplate(text);
  assert.ok(parsed.ok, text);
  return parsed.parts.flatMap((part) => (typeof part === "string" ? [] : [part.expression]));
}

test("an expression ends at its own braces, whatever stands in it", () => {
  const cases: readonly (readonly [string, ...string[]])[] = [
    ["no template { } }}"],
    ["{{a}}", "a"],
    ["x {{ a }} y {{ b.c }}", "a", "b.c"],
    ["{{a}}{{b}}", "a", "b"],
    ['{{ {"a": {"b": 1}} }}', '{"a": {"b": 1}}'],
    ['{{{"a":{"b":1}}}}', '{"a":{"b":1}}'],
    ['{{ "}}" & x }}', '"}}" & x'],
    ["{{ '}}\\'}}' }}", "'}}\\'}}'"],
    ["{{ `a}}b` }}", "`a}}b`"],
    ["{{ /* }} */ a }}", "/* }} */ a"],
    ["{{ $contains(a, /x{2}/) }}", "$contains(a, /x{2}/)"],
    ["{{ $contains(a, /[{}]/) }}", "$contains(a, /[{}]/)"],
    ["{{ $contains(a, /\\}\\}/) }}", "$contains(a, /\\}\\}/)"],
    ["{{ $contains(a, /'/) }}", "$contains(a, /'/)"],
    ["{{ a / b }} {{ c / d }}", "a / b", "c / d"],
    ["{{ (a) / 2 & '/' }}", "(a) / 2 & '/'"],
    ["{{ a and /'/ }}", "a and /'/"],
    ["{{ function($x){ $x } }}", "function($x){ $x }"],
    ['{{ "{{" }}', '"{{"'],
  ];
  for (const [text, ...wanted] of cases) assert.deepEqual(expressions(text), wanted, text);
});

test("braces that aren't closed, or hold nothing, are refused at their place", () => {
  for (const [text, position] of [
    ["ab {{ a", 3],
    ["{{ a }", 0],
    ["{{ a } }}", 0],
    ["x {{ it's }}", 2],
    ["{{}}", 0],
    ["a {{  }}", 2],
    ["{{ a }} {{", 8],
  ] as const) {
    const parsed = parseTemplate(text);
    assert.ok(!parsed.ok, text);
    assert.equal(parsed.position, position, text);
  }
});

test("offsets point at the expression", () => {
  const text = "é {{  a.b  }}-{{\n$c }}";
  const parsed = parseTemplate(text);
  assert.ok(parsed.ok);
  for (const part of parsed.parts) {
    if (typeof part === "object") assert.ok(text.startsWith(part.expression, part.offset));
  }
});

test("a text without {{ is one part, itself", () => {
  fc.assert(
    fc.property(fc.string(), (text) => {
      fc.pre(!text.includes("{{"));
      assert.deepEqual(parseTemplate(text), { ok: true, parts: [text] });
    }),
  );
});

test("any JSON object literal can stand in a template", () => {
  fc.assert(
    fc.property(fc.object({ maxDepth: 3, withNullPrototype: false }), (value) => {
      const literal = JSON.stringify(value) ?? "null";
      assert.deepEqual(expressions(`a{{ ${literal} }}b`), [literal]);
    }),
  );
});

test("inserted values are text, JSON text, or nothing, each encoded; the template's own text is not", () => {
  const parsed = parseTemplate("/a b/{{ a }}/{{ b }}/{{ c }}/{{ d }}/{{ e }}");
  assert.ok(parsed.ok);
  assert.equal(
    renderParts(parsed.parts, ["x/y", 1.5, null, undefined, { k: [true] }]),
    '/a b/x/y/1.5/null//{"k":[true]}',
  );
  assert.equal(
    renderParts(parsed.parts, ["x/y", 1.5, null, undefined, "?"], encodeURIComponent),
    "/a b/x%2Fy/1.5/null//%3F",
  );
});
