/** `webhooks.verify` of both SDKs, against vectors of the reference library of Standard Webhooks and against our own signatures. */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { promisify } from "node:util";
import { newWebhookSecret, openWebhookSigner, webhookHeaders } from "#lib/webhook-signature.ts";
import { webhooks, WebhookVerificationError } from "../../sdk/typescript/src/latchkey.ts";

interface Case {
  readonly name: string;
  readonly body: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly secret: string;
  /** Seconds. */
  readonly tolerance: number;
  /** What the error says; null: it is genuine. */
  readonly refused: RegExp | null;
}

interface Vector {
  readonly secret: string;
  readonly id: string;
  readonly timestamp: number;
  readonly body: string;
  readonly signature: string;
}

const folder = join(import.meta.dirname, "..");
const vectors = JSON.parse(
  readFileSync(join(folder, "webhooks/standard-webhooks.json"), "utf8"),
) as readonly Vector[];
const ANY_TIME = 1e12;

const secret = newWebhookSecret();
const body = '{"type":"run.completed","timestamp":"2026-11-23T10:00:00.000Z","data":{"id":"run_ü"}}';
const signedAt = (atMs: number, ...secrets: readonly string[]): Record<string, string> =>
  Object.fromEntries(webhookHeaders({ id: "msg_1", atMs, body }, secrets.map(openWebhookSigner)));
const now = signedAt(Date.now(), secret);
const own = { body, headers: now, secret, tolerance: 300, refused: null };
const without = (name: string): Record<string, string> =>
  Object.fromEntries(Object.entries(now).filter(([each]) => each !== name));

const CASES: readonly Case[] = [
  ...vectors.map((vector, index) => ({
    name: `vector ${index}`,
    body: vector.body,
    headers: {
      "webhook-id": vector.id,
      "webhook-timestamp": String(vector.timestamp),
      "webhook-signature": vector.signature,
    },
    secret: vector.secret,
    tolerance: ANY_TIME,
    refused: null,
  })),
  { ...own, name: "ours" },
  { ...own, name: "two secrets", headers: signedAt(Date.now(), newWebhookSecret(), secret) },
  {
    ...own,
    name: "another version first",
    headers: { ...now, "webhook-signature": `v1a,AAAA ${now["webhook-signature"]}` },
  },
  {
    ...own,
    name: "a flipped byte",
    body: body.replace("run_ü", "run_v"),
    refused: /no signature by this secret/,
  },
  { ...own, name: "another id", headers: { ...now, "webhook-id": "msg_2" }, refused: /no signature/ },
  { ...own, name: "another secret", secret: newWebhookSecret(), refused: /no signature/ },
  { ...own, name: "old", headers: signedAt(Date.now() - 301_000, secret), refused: /timestamp/ },
  { ...own, name: "of the future", headers: signedAt(Date.now() + 900_000, secret), refused: /timestamp/ },
  { ...own, name: "no number", headers: { ...now, "webhook-timestamp": "soon" }, refused: /timestamp/ },
  { ...own, name: "no Base64", headers: { ...now, "webhook-signature": "v1,%%%" }, refused: /no signature/ },
  { ...own, name: "no secret", secret: "", refused: /whsec_/ },
  { ...own, name: "no prefix", secret: secret.replace("whsec_", ""), refused: /whsec_/ },
  ...["webhook-id", "webhook-timestamp", "webhook-signature"].map((name) => ({
    ...own,
    name: `no ${name}`,
    headers: without(name),
    refused: new RegExp(`no header ${name}`),
  })),
];

test("TypeScript: genuine webhooks are taken, others are refused with the reason", async () => {
  for (const { name, refused, ...given } of CASES) {
    const verify = async (headers: webhooks.WebhookHeaders, content: string | Uint8Array) =>
      await webhooks.verify(content, headers, given.secret, { toleranceSeconds: given.tolerance });
    for (const [headers, content] of [
      [given.headers, given.body],
      [new Headers(given.headers), Buffer.from(given.body)],
    ] as const) {
      if (refused === null) assert.deepEqual(await verify(headers, content), JSON.parse(given.body), name);
      else
        await assert.rejects(verify(headers, content), (error: Error) => {
          assert.ok(error instanceof WebhookVerificationError, name);
          assert.match(error.message, refused, name);
          assert.ok(given.secret === "" || !error.message.includes(given.secret), name);
          return true;
        });
    }
  }
});

/** Without the package's other modules, whose dependencies need not be installed here. */
const PYTHON = "/usr/bin/python3";
const PROGRAM = `
import importlib, json, sys, types
package = types.ModuleType("latchkey"); package.__path__ = [sys.argv[1]]; sys.modules["latchkey"] = package
webhooks = importlib.import_module("latchkey.webhooks")
told = []
for case in json.load(sys.stdin):
    for body, headers in ((case["body"], case["headers"]), (case["body"].encode(), {k.title(): v for k, v in case["headers"].items()})):
        try:
            told.append(webhooks.verify(body, headers, case["secret"], tolerance=case["tolerance"]))
        except webhooks.WebhookVerificationError as error:
            told.append(str(error))
print(json.dumps(told))
`;

test("Python: the same", { skip: existsSync(PYTHON) ? false : "there is no Python" }, async () => {
  const sources = join(folder, "../sdk/python/latchkey");
  const running = promisify(execFile)(PYTHON, ["-B", "-c", PROGRAM, sources]);
  running.child.stdin?.end(JSON.stringify(CASES));
  const told = JSON.parse((await running).stdout) as readonly unknown[];
  assert.equal(told.length, 2 * CASES.length);
  for (const [index, answer] of told.entries()) {
    const { name, refused, body: given } = CASES[Math.floor(index / 2)] ?? assert.fail();
    if (refused === null) assert.deepEqual(answer, JSON.parse(given), name);
    else assert.match(String(answer), refused, name);
  }
});
