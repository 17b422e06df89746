import assert from "node:assert/strict";
import { createApiKey } from "#actions/keys/create-api-key.ts";
import { decideReview } from "#actions/reviews/decide-review.ts";
import { decideDoubtfulWrite } from "#actions/reviews/decide-write.ts";
import { revokeApiKey } from "#actions/keys/revoke-api-key.ts";
import { rotateApiKey } from "#actions/keys/rotate-api-key.ts";
import { limits } from "#domain/limits.ts";
import { eventually } from "../eventually.ts";
import { connect, type ApiAnswer } from "../caller.ts";
import { blueprint, openBench, type Bench } from "../documents/bench.ts";
import { decisionServices, reviewer } from "../documents/review-stage.ts";
import { runHousekeeping } from "../flow/run-history.ts";
import { signingOf } from "../invariants.ts";

const SECRET = "canary-of-the-doctor-71";

const DOCUMENTS = [
  `strategy: strat_it
account: acme
name: It
hosts: ["{TARGET}"]
fields: [{ key: token, label: Token, type: password }, { key: code, label: Code, type: totp_secret, required: false }]
login: { type: http, steps: [{ request: { method: POST, url: /login, form: { token: "{{ $credential.token }}" } } }], cache: 1h }`,
  blueprint(
    "reads",
    `- { id: file, type: input, refKey: file }
- { id: items, type: http, credential: it, milestone: reading, request: { url: /items }, records: items }
- { id: out, type: output, refKey: out, handles: { all: { from: items }, some: { from: items, where: number = "n1" } } }`,
    "credentials: { it: { strategy: strat_it } }",
  ),
  blueprint(
    "writes",
    `- { id: items, type: http, request: { url: "{TARGET}/items" }, records: items }
- { id: sent, type: http, for_each: items, throttle: { requests: 1000, per: 1s }, request: { method: POST, url: "{TARGET}/orders", json: { number: "{{ number }}" } } }
- { id: out, type: output, refKey: out, from: sent }`,
    "hosts: ['{TARGET}']",
  ),
  blueprint(
    "gated",
    `- { id: rows, type: input, refKey: rows, accepts: json }
- { id: parsed, type: parse, from: rows, format: json }
- { id: gate, type: review, from: parsed, editable: true }
- { id: out, type: output, refKey: out, from: gate }`,
  ),
  blueprint(
    "fails",
    `- { id: items, type: http, request: { url: "{TARGET}/nothing" }, records: items }
- { id: out, type: output, refKey: out, from: items }`,
    "hosts: ['{TARGET}']",
  ),
  blueprint(
    "brief",
    `- { id: file, type: input, refKey: file }
- { id: items, type: http, request: { url: "{TARGET}/items" }, records: items }
- { id: out, type: output, refKey: out, from: items }`,
    "hosts: ['{TARGET}']\nretention: 1s",
  ),
];

/** What the workload has left, by what it is. */
export interface Left {
  readonly credential: string;
  readonly deleted: string;
  readonly pending: string;
  readonly completed: string;
  readonly failed: string;
  readonly cancelled: string;
  readonly approved: string;
  readonly rejected: string;
  readonly parked: string;
  readonly doubtful: string;
  readonly decided: string;
  readonly purged: string;
}

export async function openWorkload(environment: Readonly<Record<string, string>> = {}): Promise<Bench> {
  const accounts = "account: acme\nname: Acme\n---\naccount: other\nname: Other";
  const bench = await openBench(DOCUMENTS, accounts, environment);
  const { target } = bench;
  target.on("POST /login", { headers: { "set-cookie": "sid=0123456789abcdef0123" } });
  // More than fits a row: what is kept of it is an object.
  const pad = "x".repeat(limits.rowContentBytesMax);
  target.on("GET /items", { json: { items: [{ number: "n0", pad }, { number: "n1" }] } });
  // Every second write of a run is lost on the way back.
  target.on("POST /orders", (seen) => (seen.body.includes("n1") ? { drop: true } : { json: {} }));
  return bench;
}

/** One of everything that the service does, over HTTP and the command line. Gives what to look for. */
export async function work(bench: Bench): Promise<Left> {
  const { caller, installation } = bench;
  const { db } = installation.database;
  const services = decisionServices(installation);
  const signing = signingOf(installation);
  const keyed = (key: string) => ({ "idempotency-key": `${key}-${bench.target.all.length}` });
  const login = { token: SECRET, code: "JBSWY3DPEHPK3PXP" };
  const [credential, deleted] = [
    await connect(caller, "strat_it", login),
    await connect(caller, "strat_it", login),
  ];
  const session = await caller.post("/credential-sessions", { strategy_id: "strat_it" }, keyed("session"));
  assert.equal(session.status, 201, session.text);
  const form = new FormData();
  form.set("credential_id", credential);
  form.set("file", new Blob(["a,b\n1,2\n"], { type: "text/csv" }), "a.csv");
  const completed = await begin(await caller.post("/blueprints/reads/trigger", form, keyed("reads")));
  assert.equal((await bench.ended(completed)).status.status, "completed");
  const withDeleted = await begin(await bench.trigger("reads", { credential_id: deleted }));
  await bench.ended(withDeleted);
  assert.equal((await caller.delete(`/credentials/${deleted}`, keyed("delete"))).status, 204);
  const failed = (await bench.run("fails")).id;
  const brief = new FormData();
  brief.set("file", new Blob(["x"]), "x.txt");
  const purged = await begin(await caller.post("/blueprints/brief/trigger", brief));
  const [cancelled, approved, rejected, parked] = [
    await park(bench, "gated"),
    await park(bench, "gated"),
    await park(bench, "gated"),
    await park(bench, "gated"),
  ];
  const cancel = await caller.post(`/blueprint-runs/${cancelled}/cancel`, undefined, keyed("cancel"));
  assert.equal(cancel.status, 200, cancel.text);
  await decideReview(services, await reviewOf(bench, approved), APPROVE, reviewer("ana"));
  await decideReview(services, await reviewOf(bench, rejected), { verdict: "reject" }, reviewer("bob"));
  const [doubtful, decided] = [await park(bench, "writes"), await park(bench, "writes")];
  const write = { accountId: await accountOf(bench, decided), runId: decided, nodeId: "sent", ordinal: 1 };
  assert.ok(await decideDoubtfulWrite(services, write, { happened: true, by: "cli" }));
  for (const run of [approved, decided]) assert.equal((await bench.ended(run)).status.status, "completed");
  const key = await createApiKey(db, signing, {
    account: "acme",
    name: "",
    blueprintKeys: null,
    scopes: null,
    lifetimeMs: null,
  });
  await rotateApiKey(db, signing, {
    keyId: key.id,
    overlapMs: 60_000,
    name: null,
    scopes: null,
    lifetimeMs: null,
  });
  assert.ok(await revokeApiKey(db, signing, key.id));
  await bench.ended(purged);
  await eventually("the run without retention is purged", async () => {
    await runHousekeeping(db);
    const rows = await db.query("select 1 from run where id = $1 and purged_at is not null", [purged]);
    return rows.length > 0 ? true : undefined;
  });
  return {
    credential,
    deleted,
    pending: session.body.id,
    completed,
    failed,
    cancelled,
    approved,
    rejected,
    parked,
    doubtful,
    decided,
    purged,
  };
}

const APPROVE = {
  verdict: "approve",
  changes: { edits: [], exclusions: [{ at: "--exclude", ordinal: 0 }] },
} as const;
const ROWS = { rows: [{ a: 1 }, { a: 2 }] };

async function begin(answer: ApiAnswer): Promise<string> {
  assert.equal(answer.status, 202, answer.text);
  return answer.body.id as string;
}

/** Triggers, and waits until the run waits for a person. */
async function park(bench: Bench, key: string): Promise<string> {
  const run = await begin(await bench.trigger(key, ROWS));
  await eventually("it waits for a person", async () => {
    const { body } = await bench.caller.get(`/blueprint-runs/${run}/status`);
    assert.equal(body.ended_at, null, JSON.stringify(body));
    return body.progress_step === "awaiting_review" ? true : undefined;
  });
  return run;
}

async function reviewOf(bench: Bench, run: string): Promise<string> {
  const [row] = await bench.installation.database.db.query<{ id: string }>(
    "select id from review where run_id = $1",
    [run],
  );
  return row?.id ?? "";
}

async function accountOf(bench: Bench, run: string): Promise<string> {
  const [row] = await bench.installation.database.db.query<{ id: string }>(
    "select account_id as id from run where id = $1",
    [run],
  );
  return row?.id ?? "";
}
