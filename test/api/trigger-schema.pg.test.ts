import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import addFormats from "ajv-formats";
import { Ajv2020, type ValidateFunction } from "ajv/dist/2020.js";
import { connect, openCaller, type Caller } from "../caller.ts";
import { install } from "../service.ts";

/** docs/api.md#the-schema-of-a-blueprint: `GET /blueprints/{blueprintKey}/schema`. */

let installation: Awaited<ReturnType<typeof install>>;
let url: string;
let caller: Caller;
const credentials: string[] = [];

const INPUT = (refKey: string, more: string): string =>
  `  - { id: i_${refKey}, type: input, refKey: ${refKey}${more} }`;

/** Each INPUT of its own kind; nothing is needed but what an entry's name says. */
const BLUEPRINTS: Readonly<Record<string, string>> = {
  plain: [INPUT("data", ""), INPUT("list", ", accepts: json"), INPUT("file", ", accepts: file")].join("\n"),
  needed: [
    INPUT("data", ", required: true"),
    INPUT("list", ", accepts: text, required: true, default: x"),
  ].join("\n"),
  typed: [
    INPUT(
      "period",
      ", accepts: json, schema: { type: object, required: [from], properties: { from: { type: string } } }",
    ),
    INPUT("count", ", schema: { type: integer, minimum: 1 }, required: true"),
    INPUT("codes", ", schema: { type: array, uniqueItems: true, items: { type: string, pattern: ^A } }"),
    INPUT("flag", ", schema: { type: boolean }, default: true"),
  ].join("\n"),
  strings: [
    INPUT("code", ", accepts: text, schema: { type: string, maxLength: 3 }"),
    INPUT("any", ", schema: { type: string, minLength: 2 }"),
    INPUT("json", ", accepts: json, schema: { type: string }"),
    INPUT("choice", ', schema: { enum: [1, 2, "3"] }'),
  ].join("\n"),
  nested: INPUT(
    "tree",
    ", schema: { $ref: '#/$defs/node', $defs: { node: { type: object, required: [v], properties: { v: { type: number }, next: { $ref: '#/$defs/node' } } } } }",
  ),
};

const SLOTS = {
  none: "",
  one: "credentials: { a: { strategy: strat_a } }",
  two: "credentials: { a: { strategy: strat_a }, b: { strategy: strat_a } }",
};
const METADATA = "metadata: [{ name: po, required: true, label: Order }, { name: note }]";

const document = (name: string, nodes: string, head: string): string =>
  `blueprint: ${name}\naccount: acme\n${head}\nnodes:\n${nodes}\n  - { id: rows, type: parse, from: ${/id: (\w+)/.exec(nodes)?.[1]}, format: json }\n  - { id: out, type: output, refKey: out, from: rows }`;

before(async () => {
  installation = await install();
  await installation.apply(
    "account: acme\nrate_limit: off",
    "account: other",
    "strategy: strat_a\naccount: acme\nfields: [{ key: token, type: password }]\nlogin: { type: none }",
    ...Object.entries(BLUEPRINTS).map(([name, nodes]) => document(name, nodes, "")),
    ...Object.entries(SLOTS).map(([name, head]) => document(`slots-${name}`, INPUT("data", ""), head)),
    document("meta", INPUT("data", ""), METADATA),
  );
  // Runs are of no interest here: only what the trigger answers.
  ({ url } = await installation.serve({}, ["api"]));
  caller = openCaller(url, await installation.createKey("acme"));
  for (let index = 0; index < 3; index++) credentials.push(await connect(caller, "strat_a", { token: "t" }));
});

after(async () => await installation?.[Symbol.asyncDispose]());

async function validatorOf(blueprint: string): Promise<ValidateFunction> {
  const { status, body, text } = await caller.get(`/blueprints/${blueprint}/schema`);
  assert.equal(status, 200, text);
  assert.equal(body.$schema, "https://json-schema.org/draft/2020-12/schema");
  const ajv = new Ajv2020({ strictTypes: false, strictRequired: false, allowUnionTypes: true });
  addFormats.default(ajv);
  return ajv.compile(body);
}

/** Whether the trigger takes it. */
async function isTaken(blueprint: string, body: unknown): Promise<boolean> {
  const { status, text } = await caller.post(`/blueprints/${blueprint}/trigger`, JSON.stringify(body));
  assert.ok([202, 400, 422].includes(status), `${status} ${text}`);
  return status === 202;
}

/** A repeatable stream of numbers below `below`. */
function numbers(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (state * 1_103_515_245 + 12_345) % 2_147_483_648;
    return Math.floor((state / 2_147_483_648) * below);
  };
}

const VALUES: readonly unknown[] = [
  null,
  true,
  false,
  0,
  1,
  2,
  3,
  -1,
  1.5,
  1e3,
  "",
  "a",
  "A",
  "ab",
  "abcd",
  "1",
  "2",
  "3",
  "true",
  "null",
  "7",
  "0042",
  "{}",
  '{"from":"x"}',
  '{"v":1}',
  "[]",
  '["A1"]',
  '"x"',
  '"quoted"',
  " 5 ",
  "\u0000",
  "x".repeat(300),
  [],
  ["A1"],
  ["A1", "A1"],
  ["b"],
  [1],
  {},
  { from: "x" },
  { from: 7 },
  { v: 1 },
  { v: 1, next: { v: 2 } },
  { v: 1, next: {} },
  { deep: { er: [null] } },
];

/**
 * What a schema can't tell: whether a string holds JSON that fits, and whether the JSON text of a value fits as a string.
 * Only there may the trigger refuse what the schema takes.
 */
const isBeyondSchemas = (value: unknown, takesText: boolean): boolean =>
  typeof value === "string" || (takesText && value !== null && value !== undefined);

for (const [name, nodes] of Object.entries(BLUEPRINTS)) {
  test(`schema and trigger agree on bodies of "${name}"`, async () => {
    const validate = await validatorOf(name);
    const keys = [...nodes.matchAll(/refKey: (\w+)/g)].map(([, key]) => key ?? "");
    const random = numbers(name.length);
    const bodies: Record<string, unknown>[] = [{}];
    // Each value at each key alone, with the others right; then whatever comes.
    const right: Record<string, unknown> = { count: 3, data: "x" };
    for (const key of keys) for (const value of VALUES) bodies.push({ ...right, [key]: value });
    for (let index = 0; index < 60; index++)
      bodies.push(
        Object.fromEntries(
          [...keys, "unknown"].filter(() => random(3) > 0).map((key) => [key, VALUES[random(VALUES.length)]]),
        ),
      );
    let agreed = 0;
    for (const body of bodies) {
      const [byTrigger, bySchema] = [await isTaken(name, body), validate(body)];
      if (byTrigger === bySchema) {
        agreed++;
        continue;
      }
      const what = JSON.stringify(body);
      assert.ok(
        bySchema,
        `the schema refuses what the trigger takes: ${what} ${JSON.stringify(validate.errors)}`,
      );
      const excused = keys.some((key) => isBeyondSchemas(body[key], name === "strings"));
      assert.ok(excused, `the schema takes what the trigger refuses: ${what}`);
    }
    assert.ok(
      agreed >= bodies.length * (name === "strings" || name === "nested" ? 0.6 : 0.8),
      `${agreed} of ${bodies.length}`,
    );
  });
}

test("schema and trigger agree on credentials, by number, form and spelling", async () => {
  const [a = "", b = "", c = ""] = credentials;
  const forms: unknown[] = [
    undefined,
    null,
    "",
    " , ",
    a,
    `${a},${b}`,
    ` ${a} ,, ${b} `,
    [a],
    [a, b],
    [` ${a} `, ""],
    [],
    [a, 7],
    7,
    true,
    {},
    "cred_x",
    `${a};${b}`,
    [`${a},${b}`],
    `x${a}`,
    `${a}x!`,
    "strat_a",
    [null],
    c,
  ];
  for (const [name, needed] of [
    ["slots-none", 0],
    ["slots-one", 1],
    ["slots-two", 2],
  ] as const) {
    const validate = await validatorOf(name);
    for (const first of forms) {
      for (const second of [undefined, b, [b], "7"]) {
        const body = { credential_id: first, credential_ids: second };
        const sent: unknown = JSON.parse(JSON.stringify(body));
        const [byTrigger, bySchema] = [await isTaken(name, body), validate(sent)];
        const what = `${name} ${JSON.stringify(sent)}`;
        if (byTrigger)
          assert.ok(bySchema, `refused by the schema: ${what} ${JSON.stringify(validate.errors)}`);
        // A schema can't count across two keys: one too many, and one that stands twice, only the trigger sees.
        const ids = [...JSON.stringify(sent).matchAll(/cred_\w{20,}/g)].map(([id]) => id);
        const isCounted = new Set(ids).size === ids.length && ids.length <= needed;
        if (!byTrigger && (isCounted || needed === 0)) assert.ok(!bySchema, `taken by the schema: ${what}`);
      }
    }
  }
});

test("schema and trigger agree on metadata and run_name", async () => {
  const validate = await validatorOf("meta");
  const names = ["po", "note", "run_name"];
  const values = [
    ...VALUES,
    undefined,
    "é".repeat(255),
    "\u{1f511}".repeat(255),
    "\u{1f511}".repeat(256),
    "a\nb",
  ];
  for (const name of names) {
    for (const value of values) {
      const body = { po: "1", [name]: value };
      const [byTrigger, bySchema] = [await isTaken("meta", body), validate(JSON.parse(JSON.stringify(body)))];
      assert.equal(bySchema, byTrigger, JSON.stringify(body).slice(0, 80));
    }
  }
  assert.equal(validate([]), false);
  assert.equal(validate("x"), false);
});

test("what people read: labels, slots, files, and that other keys are ignored", async () => {
  const { body: meta } = await caller.get("/blueprints/meta/schema");
  assert.deepEqual([meta.title, meta.type, meta.required], ["meta", "object", ["po"]]);
  assert.equal(meta.properties.po.title, "Order");
  assert.match(meta.additionalProperties.description, /^Ignored/);
  const { body: plain } = await caller.get("/blueprints/plain/schema");
  assert.match(plain.properties.file.description, /only multipart\/form-data/);
  const { body: two } = await caller.get("/blueprints/slots-two/schema");
  assert.match(two.properties.credential_id.description, /a \(strat_a\), b \(strat_a\)/);
  const { body: typed } = await caller.get("/blueprints/typed/schema");
  assert.deepEqual(typed.$defs["input-2"], { type: "integer", minimum: 1 });
  assert.deepEqual(typed.required, ["count"]);
});

test("404 and 403 as for the trigger", async () => {
  const other = openCaller(url, await installation.createKey("other"));
  const limited = openCaller(url, await installation.createKey("acme", { blueprints: ["plain"] }));
  assert.equal((await caller.get("/blueprints/nothing/schema")).status, 404);
  assert.equal((await other.get("/blueprints/plain/schema")).status, 404);
  assert.equal((await limited.get("/blueprints/typed/schema")).status, 403);
  assert.equal((await limited.get("/blueprints/plain/schema")).status, 200);
  await installation.apply(`${document("plain", BLUEPRINTS["plain"] ?? "", "")}\nretired: true`);
  assert.equal((await caller.get("/blueprints/plain/schema")).status, 404);
});
