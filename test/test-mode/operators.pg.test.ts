// docs/operator-api.md#test-mode: what operators see of test mode, and what they don't.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { createOperatorToken } from "#actions/operators/manage-tokens.ts";
import { connect, openCaller } from "../caller.ts";
import { BLUEPRINT, DOCUMENTS, STRATEGY } from "../contract/documents.ts";
import { TRIGGER } from "../contract/every-operation.ts";
import { openOperatorStage, type OperatorStage } from "../operator/stage.ts";

type Mode = "live" | "test";
type Get = (
  path: string,
  mode?: string,
) => Promise<{ readonly status: number; readonly text: string; readonly body: any }>;

let stage: OperatorStage;
/** Of all accounts, and of acme alone. */
const holders = new Map<string, Get>();
/** What each mode has made. */
const ids: Record<Mode, Record<string, string>> = { live: {}, test: {} };

before(async () => {
  stage = await openOperatorStage();
  await stage.installation.apply(...DOCUMENTS);
  for (const mode of ["live", "test"] as const) {
    const key = await stage.installation.createKey("acme", { isTest: mode === "test", name: mode });
    const caller = openCaller(stage.service.url, key);
    const credential = await connect(caller, STRATEGY, { note: mode });
    const session = (await caller.post("/credential-sessions", { strategy_id: STRATEGY })).body.id;
    const run = (
      await caller.post(`/blueprints/${BLUEPRINT}/trigger`, { ...TRIGGER, credential_id: credential })
    ).body.id;
    await caller.waitForRun(run);
    ids[mode] = { run, credential, session };
  }
  for (const accounts of [null, ["acme"]]) {
    const { token } = await createOperatorToken(
      { db: stage.db, signing: stage.signing, actor: { kind: "cli" } },
      { name: String(accounts), role: "admin", lifetimeMs: 3_600_000, accounts },
    );
    holders.set(accounts === null ? "all accounts" : "acme alone", async (path, mode) => {
      const response = await fetch(`${stage.service.url}/operator/v1${path}`, {
        headers: {
          authorization: `Bearer ${token}`,
          ...(mode !== undefined && { "latchkey-mode": mode }),
        },
      });
      const text = await response.text();
      const isJson = response.headers.get("content-type")?.startsWith("application/json") === true;
      return { status: response.status, text, body: isJson ? JSON.parse(text) : undefined };
    });
  }
});
after(async () => await stage?.[Symbol.asyncDispose]());

const LISTS: readonly (readonly [path: string, made: string | null])[] = [
  ["/runs", "run"],
  ["/credentials", "credential"],
  ["/credential-sessions", "session"],
  ["/keys", null],
  ["/blueprints", null],
  ["/strategies", null],
  ["/accounts", null],
];

for (const who of ["all accounts", "acme alone"])
  for (const [mode, other] of [
    ["live", "test"],
    ["test", "live"],
  ] as const)
    test(`an operator of ${who}: lists, search and overview of ${mode} mode have nothing of the other one`, async () => {
      const get = holders.get(who) ?? assert.fail();
      for (const [path, made] of LISTS) {
        const { status, body } = await get(path, mode);
        assert.equal(status, 200, path);
        const accounts = new Set<string>(body.items.map((each: any) => each.account));
        assert.ok(accounts.has(mode === "live" ? "acme" : "acme:test"), path);
        assert.deepEqual(
          [...accounts].filter((name) => name.endsWith(":test") !== (mode === "test")),
          [],
          path,
        );
        if (made === null) continue;
        const listed = body.items.map((each: any) => each.id);
        assert.ok(listed.includes(ids[mode][made]), path);
        assert.ok(!listed.includes(ids[other][made]), path);
      }
      const found = async (text: string) => (await get(`/search?q=${text}`, mode)).body;
      assert.equal((await found(ids[mode]["run"] ?? "")).runs.length, 1);
      assert.deepEqual(await found(ids[other]["run"] ?? ""), { runs: [], others: [] });
      const { hours } = (await get("/overview", mode)).body;
      assert.equal(
        hours.reduce((sum: number, each: any) => sum + each.completed, 0),
        1,
      );
    });

test("an object that is named is found in any mode, and without the header the mode is live", async () => {
  for (const who of ["all accounts", "acme alone"]) {
    const get = holders.get(who) ?? assert.fail();
    assert.equal((await get(`/runs/${ids.test["run"]}`)).body.account, "acme:test");
    assert.ok(!(await get("/runs")).text.includes("acme:test"));
  }
});

test("in test mode nothing of the installation can be asked for, and another word is refused", async () => {
  const get = holders.get("all accounts") ?? assert.fail();
  assert.equal((await get("/system")).status, 200);
  assert.equal((await get("/system", "test")).status, 403);
  const { status, body } = await get("/runs", "Test");
  assert.deepEqual([status, body.error.details[0].field], [422, "Latchkey-Mode"]);
});

test("no document of a test account can be applied, planned or exported, and a key of one is one of test mode", async () => {
  const { installation } = stage;
  assert.match((await installation.refusals("account: acme:test"))[0] ?? "", /account/);
  assert.match(
    (
      await installation.refusals(
        `strategy: ${STRATEGY}\naccount: acme:test\nfields: [{ key: a, type: text }]\nlogin: { type: none }`,
      )
    )[0] ?? "",
    /acme:test/,
  );
  const get = holders.get("all accounts") ?? assert.fail();
  const exported = await get("/config/export");
  assert.deepEqual([exported.status, exported.text.includes("acme:test")], [200, false]);
  assert.match(await installation.createKey("acme:test"), /^lk_test_/);
  await assert.rejects(installation.createKey("acme:test", { isTest: true }), /is a test account already/);
});
