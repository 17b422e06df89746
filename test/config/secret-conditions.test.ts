// M2: what a login decides by a secret field is refused by its place, with the remedy.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { KnownConfig } from "#actions/config/check-config.ts";
import { problemsOf } from "./problems-of.ts";

const known: KnownConfig = { accounts: new Set(["acme"]), strategies: new Map(), secrets: new Map() };
const strategy = (steps: string): string => `strategy: strat_portal
account: acme
hosts: [https://portal.example]
fields:
  - { key: method, type: select, options: [sms, app] }
  - { key: pin, type: text, secret: true }
  - { key: totp, type: totp_secret, required: false }
login:
  type: http
  steps:
${steps}`;

const CONDITION =
  "a condition may compare only fields that are not secret, and test a secret one only with `$exists($credential.<field>)`";
const TEMPLATE =
  "a template may insert secret fields unchanged or through string functions, but its conditions may use only fields that are not secret";

const PLACES: readonly (readonly [step: string, problem: string | null])[] = [
  [`{ when: "$credential.method = 'sms'", request: { url: /x } }`, null],
  [`{ when: $exists($credential.totp), request: { url: "/x/{{ $credential.totp.code }}" } }`, null],
  [`{ request: { url: /x }, expect: { json: "method = $credential.method" } }`, null],
  [
    `{ when: "$credential.pin = '1'", request: { url: /x } }`,
    `login.steps[0].when the outcome would disclose something about the secret field \`pin\`; ${CONDITION}`,
  ],
  [
    `{ request: { url: /x }, expect: { json: "pin = $credential.pin" } }`,
    `login.steps[0].expect.json the outcome would disclose something about the secret field \`pin\`; ${CONDITION}`,
  ],
  [
    `{ request: { url: /x }, extract: { a: { json: $credential.totp.code } } }`,
    `login.steps[0].extract.a.json the outcome would disclose something about the secret field \`totp\`; ${CONDITION}`,
  ],
  [
    `{ when: "$string($credential) = 'x'", request: { url: /x } }`,
    `login.steps[0].when \`$credential\` may only be read as \`$credential.<field>\`; ${CONDITION}`,
  ],
  [
    `{ request: { url: "/x/{{ $credential.pin = '1' ? 2 : 3 }}" } }`,
    `login.steps[0].request.url the outcome would disclose something about the secret field \`pin\`; ${TEMPLATE}`,
  ],
  // Said once, by who knows best.
  [
    `{ when: "$credential.pinn = '1'", request: { url: /x } }`,
    "login.steps[0].when the strategy has no field `pinn`; did you mean `pin`?",
  ],
];

test("each place of a login where a yes or a no would show", () => {
  for (const [step, problem] of PLACES)
    assert.deepEqual(
      problemsOf(strategy(`    - ${step}`), known).map((each) => each.replace(/^11:\d+ /, "")),
      problem === null ? [] : [problem],
      step,
    );
});

test("a header is a place as well", () => {
  const headers = (value: string): string =>
    strategy("").replace(/login:[^]*/, `login: { type: headers, headers: { X-Key: "${value}" } }`);
  assert.deepEqual(problemsOf(headers("{{ $credential.pin }}"), known), []);
  assert.equal(problemsOf(headers("{{ $credential.pin > '5' ? 'a' : '' }}"), known).length, 1);
});

test("a login has up to 40 steps", () => {
  const steps = (count: number): string =>
    Array.from({ length: count }, () => "    - { request: { url: /x } }").join("\n");
  assert.deepEqual(problemsOf(strategy(steps(40)), known), []);
  assert.deepEqual(problemsOf(strategy(steps(41)), known), ["11:5 login.steps must list at most 40"]);
});
