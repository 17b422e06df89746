import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { bearer, json, openStage, type RawAnswer, type Stage } from "./stage.ts";

/** docs/api.md#triggers: silent, but for a caller that asks with `Prefer: report-ignored-keys` (RFC 7240). */

let stage: Stage;

before(async () => {
  stage = await openStage();
});

after(async () => await stage?.[Symbol.asyncDispose]());

const ASK = ["Prefer", "report-ignored-keys"] as const;

async function trigger(
  body: Readonly<Record<string, unknown>>,
  ...headers: readonly (readonly [string, string])[]
): Promise<RawAnswer> {
  const known = { needed: 1, needed_too: 2 };
  return await stage.send({
    method: "POST",
    path: "/blueprints/open/trigger",
    headers: [bearer(stage.key), json, ...headers],
    body: JSON.stringify({ ...known, ...body }),
  });
}

const reported = ({ headers }: RawAnswer) => [headers["preference-applied"], headers["ignored-keys"]];

test("nobody is told who does not ask, and who asks gets the names that the Blueprint does not know", async () => {
  const odd = { neded: 1, credential_id: [], credential_ids: [], run_name: "r", data: [], Data: 1 };
  assert.deepEqual(reported(await trigger(odd)), [undefined, undefined]);
  assert.deepEqual(reported(await trigger(odd, ["Prefer", "respond-async"])), [undefined, undefined]);
  const answer = await trigger(odd, ASK);
  assert.equal(answer.status, 202, answer.text);
  assert.deepEqual(reported(answer), ["report-ignored-keys", "neded, Data"]);
  assert.deepEqual(reported(await trigger({}, ASK)), ["report-ignored-keys", undefined]);
});

const ASKED: readonly (readonly string[])[] = [
  ["respond-async, Report-Ignored-Keys"],
  ["respond-async", "wait=10, report-ignored-keys ; x=1"],
  ['a="x, report-ignored-keys2", report-ignored-keys'],
  [",, report-ignored-keys"],
];
const NOT_ASKED: readonly (readonly string[])[] = [
  ['a="report-ignored-keys"'],
  ['a="x, report-ignored-keys"'],
  ["report-ignored-keys2"],
  ["x; report-ignored-keys"],
  [""],
  ['"unfinished, report-ignored-keys'],
];

for (const [sent, isAsked] of [
  ...ASKED.map((each) => [each, true] as const),
  ...NOT_ASKED.map((each) => [each, false] as const),
]) {
  test(`Prefer: ${JSON.stringify(sent)} ${isAsked ? "asks" : "does not ask"}`, async () => {
    const answer = await trigger({ odd: 1 }, ...sent.map((value) => ["Prefer", value] as const));
    assert.deepEqual(reported(answer), isAsked ? ["report-ignored-keys", "odd"] : [undefined, undefined]);
  });
}

test("no name can end the header, be taken for two, or make it too long", async () => {
  const names = [
    "a\r\nX-Evil: 1",
    "b, c",
    "p\u00e9riode",
    "\u{1f511}",
    "\u0000",
    "d%20e",
    "",
    "__proto__",
    '"',
  ];
  const body = Object.fromEntries(names.map((name) => [name, 1]));
  const answer = await trigger(body, ASK);
  assert.equal(answer.headers["x-evil"], undefined);
  const header = String(answer.headers["ignored-keys"]);
  assert.match(header, /^[!-~ ]+$/);
  const items = header.split(", ").map((item) => (item === '""' ? "" : decodeURIComponent(item)));
  assert.deepEqual(items, names);
  const long = Object.fromEntries(
    Array.from({ length: 30 }, (_, index) => [`${index}-${"\u{1f511}".repeat(500)}`, 1]),
  );
  const cut = String((await trigger(long, ASK)).headers["ignored-keys"]);
  assert.ok(cut.length <= 4_096, `${cut.length}`);
  assert.match(decodeURIComponent(cut.split(", ")[0] ?? ""), /^0-\u{1f511}{62}$/u);
  const many = Object.fromEntries(Array.from({ length: 30 }, (_, index) => [`odd-${index}`, 1]));
  assert.equal(String((await trigger(many, ASK)).headers["ignored-keys"]).split(", ").length, 20);
});

test("a replay says the same, no matter which request was first; a refusal too, where it explains the most", async () => {
  const key = ["Idempotency-Key", "ignored-replay"] as const;
  const first = await trigger({ odd: 1 }, key);
  assert.deepEqual(reported(first), [undefined, undefined]);
  const replay = await trigger({ odd: 1 }, key, ASK);
  assert.deepEqual([replay.text, replay.headers["idempotent-replay"]], [first.text, "true"]);
  assert.deepEqual(reported(replay), ["report-ignored-keys", "odd"]);
  const refused = await trigger({ needed: null, neded: 1 }, ASK);
  assert.equal(refused.status, 400);
  assert.deepEqual(reported(refused), ["report-ignored-keys", "neded"]);
  const form = new FormData();
  for (const name of ["needed", "needed_too", "odd"]) form.set(name, "x");
  const sent = await stage.acme.post("/blueprints/open/trigger", form, { prefer: ASK[1] });
  assert.equal(sent.status, 202, sent.text);
  assert.equal(sent.headers.get("ignored-keys"), "odd");
});

test("the keys of a session's creation that are ignored, too", async () => {
  const body = { strategy_id: "strat_acme", returnUrl: "x", name: null };
  const answer = await stage.acme.post("/credential-sessions", body, { prefer: ASK[1] });
  assert.equal(answer.status, 201, answer.text);
  assert.deepEqual(
    [answer.headers.get("preference-applied"), answer.headers.get("ignored-keys")],
    ["report-ignored-keys", "returnUrl"],
  );
});
