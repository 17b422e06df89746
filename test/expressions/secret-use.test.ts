// M2: the yes or no of a login's author tells nothing of a secret field. An allow-list, so what is not understood is refused.
import assert from "node:assert/strict";
import { test } from "node:test";
import { Type } from "typebox";
import { EXPRESSION, TEMPLATE } from "#domain/expression.ts";
import { compileExpression } from "#expressions/compile.ts";
import { findSecretUses } from "#expressions/secret-use.ts";

const schema = Type.Object({
  when: Type.Optional(Type.String({ [EXPRESSION]: "login" })),
  text: Type.Optional(Type.Unknown({ [TEMPLATE]: "login" })),
});
const isSecret = (field: string): boolean => !["method", "notes"].includes(field);

const isRefused = (login: { when: string } | { text: string }): boolean =>
  findSecretUses(schema, login, isSecret).length > 0;

const ALLOWED = [
  "$credential.method = 'sms'",
  "$credential.`method` in ['sms', 'app']",
  "$contains($credential.notes, /^x/) and $credential.method != 'sms'",
  "$exists($credential.key)",
  "$not($exists($credential.key)) or $exists($csrf)",
  "$exists($credential.totp) ? $credential.method = 'app' : false",
  "($m := $credential.method; $m = 'sms')",
  "token = $csrf",
  "$credential.method ?? 'sms' = 'sms'",
];

const REFUSED = [
  "$credential.key = 'S'",
  "$credential.key",
  "$boolean($credential.key)",
  "$substring($credential.key, 0, 1) = 'S'",
  "$floor($number($credential.key) / 2) % 2 = 1",
  "$credential.key ?: 'x'",
  "$credential.totp.code = '1'",
  "$exists($credential.totp.code)",
  "$exists($credential.headers.`X-Key`)",
  // By another name.
  "($c := $credential; $c.key = 'S')",
  "($c := $credential; $exists($c.key))",
  "($k := $credential.key; $k = 'S')",
  "function($c){ $c.key }($credential) = 'S'",
  "(function(){ $credential })().key = 'S'",
  "($credential).key = 'S'",
  "$credential@$c.($c.key = 'S')",
  // In another way.
  "$lookup($credential, 'key') = 'S'",
  "$lookup($credential, 'method') = 'sms'",
  "$credential.* = 'S'",
  "$credential.**[0] = 'S'",
  "$credential[key = 'S'].method = 'sms'",
  "$credential.method[$credential.key = 'S'] = 'sms'",
  "$credential.method.($credential.key = 'S')",
  "$credential.method.%.key = 'S'",
  "$credential{key: method}",
  "$credential^(key).method = 'sms'",
  "$credential#$i.method = 'sms'",
  "$credential ~> |$|{'method': key}|",
  "$credential ~> $string() = 'S'",
  "$each($credential, function($v){ $v })[0] = 'S'",
  "$spread($credential)[0] = 'S'",
  "$string($credential) = 'S'",
  "$keys($credential)[0] = 'key'",
  "$merge([$credential]).key = 'S'",
  "$sift($credential, function($v){ $v = 'S' })",
  "$map([$credential], function($c){ $c.key = 'S' })",
  "$exists($credential)",
  "$exists($credential.*)",
  "$exists($credential.key[$ = 'S'])",
  "$exists($credential[key = 'S'].method)",
  "$exists($match($credential.key, /^S/))",
  "$credential.key ~> $exists",
  "$credential.key ~> $contains('S')",
  // Functions of a name that means something else elsewhere.
  "($exists := function($v){ $v = 'S' }; $exists($credential.key))",
  "function($exists){ $exists($credential.key) }(function($v){ $v = 'S' })",
  "[1]@$exists.($exists($credential.key))",
  // A field that nobody knows.
  "$credential.unknown = 'S'",
];

test("conditions compare what is not secret, and ask of a secret field only whether it is there", () => {
  for (const when of ALLOWED) assert.ok(!isRefused({ when }), when);
  for (const when of REFUSED) {
    assert.ok(compileExpression(when).ok, `${when} is an expression`);
    assert.ok(isRefused({ when }), when);
  }
});

const INSERTED = [
  ...ALLOWED,
  "$credential.key",
  "$credential.totp.code",
  "$credential.headers.`X-Tenant`",
  "'Basic ' & $base64encode($credential.method & ':' & $credential.key)",
  "$substring($credential.key, 2, 1)",
  "$uppercase($trim($credential.key))",
  "$credential.method = 'sms' ? $credential.key : $credential.totp.code",
  "$exists($credential.key) ? $credential.key : ''",
  "$credential.key ?? 'none'",
  "{'user': $credential.method, 'list': [$credential.key]}",
  "($credential.key)",
];

const CHOSEN = [
  "$substring($credential.key, 0, 1) = 'S' ? '/yes' : '/no'",
  "$credential.key ?: '/no'",
  "$error($credential.key)",
  "$number($credential.key)",
  "$assert($credential.key = 'S', 'no')",
  "$lookup({'S': '/yes'}, $credential.key)",
  "{$credential.key: 1}",
  "['/a', '/b'][$number($credential.key)]",
  "$credential.key[$ = 'S']",
  "$filter($credential.key, function($v){ $v = 'S' })",
  "$contains($credential.key, 'S')",
  "$match($credential.key, /S/)",
  "$replace($credential.key, /^S.*/, 'yes')",
  "$replace($credential.key, 'S', '..')",
  "$substringBefore($credential.key, 'S')",
  "$split($credential.key, 'S')",
  "$substring('yes', $length($credential.key))",
  "$pad('a', $number($credential.key))",
  "$credential.key & ($credential.key = 'S')",
  "$credential.key in ['S']",
  "-$credential.key",
  "[1..$number($credential.key)]",
  "($k := $credential.key; $k = 'S' ? 1 : 2)",
  "($trim := function($v){ $v = 'S' ? 1 : 2 }; $trim($credential.key))",
  "$string($credential)",
  "$lookup($credential, 'key')",
  "$credential.*",
];

test("templates insert secret fields, and choose by what is not secret", () => {
  for (const each of INSERTED) assert.ok(!isRefused({ text: `a {{ ${each} }} b` }), each);
  for (const each of CHOSEN) {
    assert.ok(compileExpression(each).ok, `${each} is an expression`);
    assert.ok(isRefused({ text: `{{ ${each} }}` }), each);
  }
});

test("the place and the field are named, and nothing of the expression's literals", () => {
  assert.deepEqual(findSecretUses(schema, { when: "$credential.key = 'S'" }, isSecret, ["login"]), [
    { path: ["login", "when"], form: "expression", field: "key" },
  ]);
  assert.deepEqual(findSecretUses(schema, { when: "$string($credential) = 'S'" }, isSecret), [
    { path: ["when"], form: "expression", field: null },
  ]);
});
