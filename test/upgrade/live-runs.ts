import assert from "node:assert/strict";
import type { Database } from "#db/connection/pool.ts";
import { eventually } from "../eventually.ts";
import { connect, type Caller } from "../caller.ts";
import {
  readCompleted,
  resultsOf,
  type CompletedRun,
  type Expected,
  type Replay,
  type Use,
} from "./expected.ts";
import { PASSWORDS, type Northwind } from "./northwind.ts";

/** Triggers; gives the run's id. */
export async function begin(caller: Caller, blueprint: string, body: unknown = {}): Promise<string> {
  const answer = await caller.post(`/blueprints/${blueprint}/trigger`, body);
  assert.equal(answer.status, 202, answer.text);
  return answer.body.id as string;
}

/** The results of a run that is begun and awaited. */
export async function use(
  caller: Caller,
  { blueprint, body }: Pick<Use, "blueprint" | "body">,
): Promise<unknown> {
  return await resultsOf(caller, await begin(caller, blueprint, body));
}

export function stockForm(): FormData {
  const form = new FormData();
  form.set("file", new Blob(["sku,n\nscrew,7\nwasher,3\n"], { type: "text/csv" }), "Bestände.csv");
  return form;
}

/** Triggers, and waits until a person is asked. */
export async function park(caller: Caller, blueprint: string, rows: readonly object[]): Promise<string> {
  const run = await begin(caller, blueprint, { rows });
  await eventually("it waits for a person", async () => {
    const { body } = await caller.get(`/blueprint-runs/${run}/status`);
    assert.equal(body.ended_at, null, JSON.stringify(body));
    return body.progress_step === "awaiting_review" ? true : undefined;
  });
  return run;
}

export async function reviewOf(db: Database, run: string): Promise<string> {
  const [row] = await db.query<{ id: string }>("select id from review where run_id = $1", [run]);
  return row?.id ?? assert.fail(`run ${run} has no review`);
}

export const ROWS = [
  { number: "a", n: 1 },
  { number: "b", n: -2 },
  { number: "c", n: 3 },
];

interface Left {
  readonly completed: readonly CompletedRun[];
  readonly downloadPath: string;
  readonly failed: readonly string[];
  readonly cancelled: readonly string[];
  readonly parked: Expected["parked"];
  readonly doubtful: Expected["doubtful"];
  readonly lockedCredential: string;
  readonly replays: readonly Replay[];
}

/** Runs of all kinds, as their callers leave them. */
export async function leaveRuns({
  acme,
  northwind,
  db,
}: {
  readonly acme: Caller;
  readonly northwind: Northwind;
  readonly db: Database;
}): Promise<Left> {
  const completed: CompletedRun[] = [];
  for (const [blueprint, body] of [["archive"], ["report"], ["stock", stockForm()]] as const) {
    const run = await begin(acme, blueprint, body);
    await resultsOf(acme, run);
    completed.push(await readCompleted(acme, "acme", run));
  }
  const link = await acme.get(`/blueprint-runs/${completed[0]?.id}/results?deliveryMethod=presigned_url`);
  const { pathname, search } = new URL(link.body.results.out);
  const failed = await begin(acme, "missing");
  assert.equal((await acme.waitForRun(failed)).body.status, "failed");
  const cancelled = await park(acme, "approval", ROWS);
  assert.equal((await acme.post(`/blueprint-runs/${cancelled}/cancel`)).status, 200);
  const parked = await park(acme, "approval", ROWS);
  const { lockedCredential, run: locking } = await lockOut(acme);
  return {
    completed,
    downloadPath: `${pathname}${search}`,
    failed: [failed, locking],
    cancelled: [cancelled],
    parked: { run: parked, review: await reviewOf(db, parked) },
    doubtful: await leaveInDoubt(acme, northwind, "n1"),
    lockedCredential,
    replays: await leaveReplays(acme),
  };
}

/** Somebody has changed their password at the target. */
async function lockOut(acme: Caller): Promise<{ readonly lockedCredential: string; readonly run: string }> {
  const values = { username: "ada", password: `old-${PASSWORDS.ada}` };
  const lockedCredential = await connect(acme, "strat_portal", values);
  const run = await begin(acme, "invoices", { credential_id: lockedCredential });
  assert.equal((await acme.waitForRun(run)).body.status, "failed");
  return { lockedCredential, run };
}

/** The second of three writes is answered 500: nobody knows whether it happened. */
export async function leaveInDoubt(
  acme: Caller,
  northwind: Northwind,
  number: string,
): Promise<Expected["doubtful"]> {
  northwind.brokenOrders.add(number);
  const run = await park(acme, "orders", [
    { number: `${number}-before` },
    { number },
    { number: `${number}-after` },
  ]);
  northwind.brokenOrders.delete(number);
  const sent = northwind.seen("POST /orders").at(-1);
  return { run, node: "sent", record: 1, token: String(sent?.headers["idempotency-key"]) };
}

/** What was asked for under a key, and is answered the same for a day. */
async function leaveReplays(acme: Caller): Promise<readonly Replay[]> {
  const asked = [
    ["/blueprints/report/trigger", { run_name: "Once" }],
    ["/credential-sessions", { strategy_id: "strat_portal", name: "Ada" }],
    [
      "/embedded-credential-sessions",
      { origin: "https://app.acme.example", blueprint_keys: ["tokens"], expires_in_seconds: 86_400 },
    ],
  ] as const;
  const replays: Replay[] = [];
  for (const [index, [path, body]] of asked.entries()) {
    const idempotencyKey = `once-${index}`;
    const { status, text } = await acme.post(path, body, { "idempotency-key": idempotencyKey });
    assert.ok(status < 300, text);
    replays.push({ path, idempotencyKey, body, status, text });
  }
  await acme.waitForRun(JSON.parse(replays[0]?.text ?? "").id);
  return replays;
}
