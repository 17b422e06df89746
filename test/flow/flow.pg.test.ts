import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { brotliDecompressSync } from "node:zlib";
import { PORTAL_ACCOUNTS } from "../../examples/portal/accounts.ts";
import { generateInvoices, INVOICE_COUNT, RULE_BREAKERS } from "../../examples/portal/invoices.ts";
import { startPortal, type Portal } from "../../examples/portal/portal.ts";
import { connect, openCaller, submitHostedForm, type Caller } from "../caller.ts";
import { exampleDocument, install } from "../service.ts";
import { historyOf, recordHistory } from "./run-history.ts";

const STRATEGY = "strat_northwind_portal";
const RUN_ID = /^run_\w+$/;
const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;
const TIMESTAMP = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;
const TRIGGER = { purchase_order: "PO-7", period: { from: "2019-01-01" } };

let portal: Portal;
let installation: Awaited<ReturnType<typeof install>>;
let caller: Caller;
const credentials = new Map<string, string>();

before(async () => {
  // Every answer of the portal takes a moment, so that polling sees each step.
  portal = await startPortal({ port: 0, delayMs: 60 });
  installation = await install();
  await installation.apply(
    exampleDocument("account.yaml", portal.url),
    exampleDocument("strategies/northwind-portal.yaml", portal.url),
    exampleDocument("blueprints/supplier-invoices.yaml", portal.url),
    exampleDocument("blueprints/invoice-table.yaml", portal.url),
  );
  await recordHistory(installation.database.db);
  const key = await installation.createKey("acme");
  caller = openCaller((await installation.serve()).url, key);
});

after(async () => {
  await installation?.[Symbol.asyncDispose]();
  await portal?.close();
});

test("a session goes from its form by redirect to completed, and gives its credential only then", async () => {
  for (const { username, password, totpSecret } of PORTAL_ACCOUNTS) {
    const created = await caller.post("/credential-sessions", {
      strategy_id: STRATEGY,
      return_url: "http://localhost:3000/connected?plan=pro#done",
    });
    assert.equal(created.status, 201);
    const { id, hosted_url: hostedUrl } = created.body;
    assert.deepEqual(
      { ...created.body, id: null, hosted_url: null, expires_at: null, created_at: null },
      {
        id: null,
        status: "pending",
        hosted_url: null,
        return_url: "http://localhost:3000/connected?plan=pro#done",
        strategy_id: STRATEGY,
        credential_id: null,
        expires_at: null,
        completed_at: null,
        created_at: null,
      },
    );
    assert.equal(Date.parse(created.body.expires_at) - Date.parse(created.body.created_at), 7 * 86_400_000);

    const submitted = await submitHostedForm(hostedUrl, {
      username,
      password,
      ...(totpSecret === null ? {} : { totp: totpSecret }),
    });
    assert.equal(submitted.status, 303);
    assert.equal(
      submitted.headers.get("location"),
      `http://localhost:3000/connected?plan=pro&session_id=${id}#done`,
    );

    const { body } = await caller.get(`/credential-sessions/${id}`);
    assert.equal(body.status, "completed");
    assert.equal(body.hosted_url, null);
    assert.match(body.completed_at, TIMESTAMP);
    assert.match(body.credential_id, /^cred_\w+$/);
    credentials.set(username, body.credential_id);
  }
});

for (const { username, totpSecret } of PORTAL_ACCOUNTS) {
  const login = totpSecret === null ? "a password" : "a password and a one-time code";

  test(`supplier-invoices with ${login}: every step in order, nine fields, the same records both ways`, async () => {
    const { db } = installation.database;
    const body = { ...TRIGGER, credential_id: credentials.get(username), run_name: "Invoices", ignored: "x" };
    // While the account's row is locked nothing is admitted: the run can be seen waiting.
    const run = await db.transaction(async (tx) => {
      await tx.query("select 1 from account for no key update");
      const triggered = await caller.post("/blueprints/supplier-invoices/trigger", body);
      assert.equal(triggered.status, 202);
      assert.deepEqual(Object.keys(triggered.body), ["id", "run_key", "status"]);
      assert.equal(triggered.body.status, "queued");
      const { body: waiting } = await caller.get(`/blueprint-runs/${triggered.body.id}/status`);
      assert.equal(`${waiting.status}/${waiting.progress_step}`, "queued/queued");
      assert.equal(waiting.started_at, null);
      const early = await caller.get(`/blueprint-runs/${triggered.body.id}/results?deliveryMethod=direct`);
      assert.equal(early.status, 409);
      assert.equal(early.body.error.type, "conflict");
      return triggered.body;
    });
    assert.match(run.id, RUN_ID);
    assert.match(run.run_key, UUID);

    const { body: done, steps } = await caller.waitForRun(run.run_key);
    const shown = steps.filter((step) => step !== "queued/queued" && step !== "running/running");
    assert.deepEqual(shown, ["queued/authenticating", "running/reading_invoices", "completed/completed"]);
    assert.deepEqual(
      (await historyOf(db, run.id)).filter(
        (state, index, all) => state !== "running/running" || all.indexOf(state) === index,
      ),
      [
        "queued/queued",
        "queued/authenticating",
        "running/running",
        "running/reading_invoices",
        "completed/completed",
      ],
    );
    await assertProjection(done, run);
    await assertSameResults(run, ["invoices"], { purchase_order: "PO-7" }, done);
  });

  test(`invoice-table with ${login}: CSV and HTML give their records`, async () => {
    const triggered = await caller.post("/blueprints/invoice-table/trigger", {
      credential_id: credentials.get(username),
      page: "2",
    });
    assert.equal(triggered.status, 202);
    const { body: done, steps } = await caller.waitForRun(triggered.body.id);
    assert.deepEqual(
      steps.filter((step) => step !== "queued/queued" && step !== "running/running"),
      ["queued/authenticating", "running/downloading_csv", "running/reading_table", "completed/completed"],
    );
    const results = await assertSameResults(triggered.body, ["open_invoices", "table_page"], {}, done);
    const invoices = generateInvoices();
    assert.deepEqual(
      results["open_invoices"].records.map((record: any) => record.data.number),
      invoices.filter((invoice) => invoice.status === "open").map((invoice) => invoice.number),
    );
    assert.deepEqual(
      results["table_page"].records.map((record: any) => record.data.total),
      invoices.slice(20, 40).map((invoice) => invoice.total),
    );
  });
}

test("the records are the portal's: none missing, none doubled, the three that break a rule marked", async () => {
  const run = await caller.post("/blueprints/supplier-invoices/trigger", {
    ...TRIGGER,
    credential_ids: [credentials.get("demo")],
  });
  await caller.waitForRun(run.body.id);
  const { body } = await caller.get(`/blueprint-runs/${run.body.id}/results?deliveryMethod=direct`);
  const { totalRecords, records } = body.results.invoices;
  assert.equal(totalRecords, INVOICE_COUNT);
  assert.deepEqual(
    records.map((record: any) => record.data),
    generateInvoices().map(({ number, supplier, due_date, currency, total }) => ({
      number,
      supplier,
      due: due_date,
      currency,
      total: Number(total),
    })),
  );
  const broken = records.flatMap((record: any, index: number) => (record.isValid ? [] : [index]));
  assert.deepEqual(
    broken,
    Object.values(RULE_BREAKERS).toSorted((a, b) => a - b),
  );
  for (const record of records) assert.equal(record.errors.length > 0, !record.isValid);
});

test("a wrong password fails the run at authenticating, with the fixed message and no started_at", async () => {
  const credential = await connect(caller, STRATEGY, { username: "demo", password: "not the password" });
  const run = await caller.post("/blueprints/supplier-invoices/trigger", {
    ...TRIGGER,
    credential_id: credential,
  });
  const { body, steps } = await caller.waitForRun(run.body.id);
  assert.deepEqual(
    steps.filter((step) => step !== "queued/queued"),
    ["queued/authenticating", "failed/failed"],
  );
  assert.equal(body.started_at, null);
  assert.match(body.ended_at, TIMESTAMP);
  assert.deepEqual(body.error, {
    code: "execution_failed",
    message: "The run did not complete. The operator's dashboard shows why.",
  });
  assert.deepEqual(await historyOf(installation.database.db, run.body.id), [
    "queued/queued",
    "queued/authenticating",
    "failed/failed",
  ]);
  const results = await caller.get(`/blueprint-runs/${run.body.id}/results`);
  assert.equal(results.status, 409);
});

test("a required metadata item that is missing is a 400 with one detail each, and makes no run", async () => {
  await installation.apply(
    exampleDocument("blueprints/supplier-invoices.yaml", portal.url)
      .replace("blueprint: supplier-invoices", "blueprint: two-items")
      .replace(
        "label: Purchase order }",
        "label: Purchase order }\n  - { name: cost_center, required: true }\n  - { name: note }",
      ),
  );
  const credential_id = credentials.get("demo");
  const refused = async (body: object): Promise<unknown> => {
    const answer = await caller.post("/blueprints/two-items/trigger", {
      credential_id,
      period: TRIGGER.period,
      ...body,
    });
    assert.equal(answer.status, 400);
    assert.deepEqual(Object.keys(answer.body), ["error"]);
    assert.equal(answer.body.error.type, "validation_error");
    return answer.body.error.details.map(({ field, code }: { field: string; code: string }) => [field, code]);
  };
  assert.deepEqual(await refused({}), [
    ["purchase_order", "invalid_input_data"],
    ["cost_center", "invalid_input_data"],
  ]);
  assert.deepEqual(await refused({ purchase_order: "PO-1" }), [["cost_center", "invalid_input_data"]]);
  const made = await installation.database.db.query(
    "select 1 from run join blueprint on blueprint.id = blueprint_id where key = 'two-items'",
  );
  assert.equal(made.length, 0);

  // Spec, Top-level key routing: stored as text, shown with the results; what is no item is ignored.
  const run = await caller.post("/blueprints/two-items/trigger", {
    credential_id,
    ...TRIGGER,
    purchase_order: 117,
    cost_center: { code: "Köln", parts: [1, 2] },
    purchase_ordr: "misspelt",
  });
  assert.equal(run.status, 202);
  await caller.waitForRun(run.body.id);
  const { body } = await caller.get(`/blueprint-runs/${run.body.id}/results?deliveryMethod=direct`);
  assert.deepEqual(body.executionMetadata.metadata, {
    purchase_order: "117",
    cost_center: '{"code":"Köln","parts":[1,2]}',
  });
});

async function assertProjection(done: any, run: { id: string; run_key: string }): Promise<void> {
  assert.deepEqual(Object.keys(done).toSorted(), [
    "blueprint_id",
    "created_at",
    "ended_at",
    "error",
    "id",
    "progress_step",
    "run_key",
    "started_at",
    "status",
  ]);
  assert.equal(done.id, run.id);
  assert.equal(done.run_key, run.run_key);
  assert.equal(done.error, null);
  assert.match(done.blueprint_id, /^bp_\w+$/);
  for (const name of ["created_at", "started_at", "ended_at"]) assert.match(done[name], TIMESTAMP);
  assert.ok(done.created_at <= done.started_at && done.started_at <= done.ended_at);
  const byId = await caller.get(`/blueprint-runs/${run.id}/status`);
  const byKey = await caller.get(`/blueprint-runs/${run.run_key}/status`);
  assert.deepEqual(byKey.body, byId.body);
}

/** Direct and presigned give the same records, by run id and by run key. Gives the direct ones. */
async function assertSameResults(
  run: any,
  keys: readonly string[],
  metadata: object,
  done: any,
): Promise<any> {
  const { body: direct } = await caller.get(`/blueprint-runs/${run.id}/results?deliveryMethod=direct`);
  assert.deepEqual(Object.keys(direct).toSorted(), ["dataDeliveryMethod", "executionMetadata", "results"]);
  assert.equal(direct.dataDeliveryMethod, "direct");
  assert.deepEqual(Object.keys(direct.results), keys);
  assert.deepEqual(direct.executionMetadata, {
    runKey: run.run_key,
    metadata,
    timings: { executionBeganAt: done.started_at, executionCompletedAt: done.ended_at },
  });
  const byKey = await caller.get(`/blueprint-runs/${run.run_key}/results?deliveryMethod=direct`);
  assert.deepEqual(byKey.body, direct);
  // Spec, GET /blueprint-runs/{runId}/results: when omitted, the large-dataset mode applies.
  for (const query of ["", "?deliveryMethod=presigned_url"]) {
    const { body: presigned } = await caller.get(`/blueprint-runs/${run.run_key}/results${query}`);
    assert.equal(presigned.dataDeliveryMethod, "presigned_url");
    assert.deepEqual(Object.keys(presigned.results), keys);
    assert.deepEqual(presigned.executionMetadata, direct.executionMetadata);
    for (const key of keys) {
      const response = await fetch(presigned.results[key]);
      assert.equal(response.status, 200);
      const bytes = Buffer.from(await response.arrayBuffer());
      assert.deepEqual(JSON.parse(brotliDecompressSync(bytes).toString("utf8")), direct.results[key]);
    }
  }
  for (const key of keys) {
    const { totalRecords, records, ...rest } = direct.results[key];
    assert.deepEqual(rest, {});
    assert.equal(totalRecords, records.length);
    assert.ok(totalRecords > 0);
    for (const record of records)
      assert.deepEqual(Object.keys(record).toSorted(), ["data", "errors", "isValid"]);
  }
  return direct.results;
}
