import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, afterEach, before, test } from "node:test";
import { decideReview } from "#actions/reviews/decide-review.ts";
import { readReview, readReviewRecords } from "#actions/reviews/read-review.ts";
import { openLocalStore } from "#blobs/local-store.ts";
import type { WantedChanges } from "#domain/review.ts";
import { must } from "#lib/assert.ts";
import { untilDead } from "../processes.ts";
import { eventually } from "../eventually.ts";
import { openCaller, type Caller } from "../caller.ts";
import { blueprint } from "../documents/bench.ts";
import { decisionServices, reviewer } from "../documents/review-stage.ts";
import { assertInvariants } from "../invariants.ts";
import { install, type ServiceProcess } from "../service.ts";
import { inTier } from "../tiers.ts";

// A review is asked once and decided once, wherever a process dies: what came to it, what the reviewer changed and what comes out
// are compared.

const GATE = "- { id: gate, type: review, from: made, editable: true";
const nodes = (more: string) => `- { id: given, type: input, refKey: rows, accepts: json }
- { id: lines, type: parse, from: given, format: json }
- { id: made, type: map, from: lines, fields: { n: n, at: $millis() } }
${GATE}${more} }
- { id: out, type: output, refKey: out, from: gate }`;
const ROWS = [{ n: 0 }, { n: 1 }, { n: 2 }];

let installation: Awaited<ReturnType<typeof install>>;
let key: string;
let folder: string;

before(async () => {
  folder = mkdtempSync(join(tmpdir(), "latchkey-review-"));
  installation = await install();
  await installation.apply(
    "account: acme\nname: Acme",
    blueprint("asks", nodes("")),
    blueprint("approves", nodes(", timeout: 2s, on_timeout: approve")),
    blueprint("fails", nodes(", timeout: 2s")),
  );
  key = await installation.createKey("acme");
});
afterEach(async () => await assertInvariants(installation));
after(async () => {
  await installation?.[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true, force: true });
});

async function trigger(service: ServiceProcess, way: string): Promise<string> {
  const { body } = await openCaller(service.url, key).post(`/blueprints/${way}/trigger`, { rows: ROWS });
  return body.id;
}

interface Row {
  readonly id: string;
  readonly status: string;
  readonly lease: string | null;
  readonly parked: boolean;
}

/** The one review of a run that is parked. */
async function parkedAt(run: string): Promise<string> {
  return await eventually("it waits for a person, and nobody holds it", async () => {
    const rows = await installation.database.db.query<Row>(
      `select review.id, review.status, run.lease_owner as lease, run.parked_at is not null as parked
       from review join run on run.id = review.run_id where review.run_id = $1`,
      [run],
    );
    assert.ok(rows.length <= 1, "one review of a node");
    return rows[0]?.parked === true && rows[0].lease === null ? rows[0].id : undefined;
  });
}

const recordsAt = async (review: string) => {
  const stored = must(await readReview(installation.database.db, review), "the review");
  const blobs = openLocalStore(join(installation.dataFolder, "objects"));
  return await Array.fromAsync(readReviewRecords(blobs, stored));
};

async function approve(review: string, edits: WantedChanges["edits"], excluded: number): Promise<void> {
  const changes = { edits, exclusions: [{ at: "--exclude", ordinal: excluded }] };
  const services = decisionServices(installation);
  const outcome = await decideReview(services, review, { verdict: "approve", changes }, reviewer("ana"));
  assert.equal(outcome.kind, "decided");
}

async function outputOf(caller: Caller, run: string): Promise<readonly any[]> {
  const { body } = await caller.waitForRun(run);
  assert.equal(body.status, "completed");
  const results = await caller.get(`/blueprint-runs/${run}/results?deliveryMethod=direct`);
  return results.body.results.out.records.map(({ data }: any) => data);
}

const commandAt = async (point: string, ...words: string[]) => {
  const dying = { ...installation.environment, LATCHKEY_FAILPOINTS: `${point}=kill` };
  Object.assign(installation.environment, dying);
  try {
    return await installation.command("reviews", ...words);
  } finally {
    delete installation.environment["LATCHKEY_FAILPOINTS"];
  }
};

const PARKING = ["run.before_park", "review.after_insert", "run.after_park"];

for (const point of inTier(PARKING, (each) => each === "run.after_park")) {
  test(`killed at ${point}, the run waits with one review, and what was shown is what goes on`, async () => {
    const dying = await installation.serveProcess({ LATCHKEY_FAILPOINTS: `${point}=kill` });
    const run = await trigger(dying, "asks");
    await untilDead(dying);
    const service = await installation.serveProcess();
    const review = await parkedAt(run);
    const shown = await recordsAt(review);
    assert.deepEqual(
      shown.map(({ data }) => data.n),
      [0, 1, 2],
    );
    let last = service;
    if (point === "run.after_park") {
      // While it waits the service may come and go.
      await service.end("SIGKILL");
      last = await installation.serveProcess();
    }
    await approve(review, [], 1);
    // The times say that nothing was recomputed.
    assert.deepEqual(
      await outputOf(openCaller(last.url, key), run),
      shown.filter(({ ordinal }) => ordinal !== 1).map(({ data }) => data),
    );
    await last.end("SIGKILL");
  });
}

test("a decision whose process is killed before its commit did not happen; after it, it did, and the run goes on", async () => {
  const service = await installation.serveProcess();
  const [first, second] = [await trigger(service, "asks"), await trigger(service, "asks")];
  const [undone, done] = [await parkedAt(first), await parkedAt(second)];
  const edits = join(folder, "edits.ndjson");
  writeFileSync(edits, '{"ordinal":2,"data":{"n":"two"}}');
  const words = (review: string) => ["approve", review, "--edits", edits, "--exclude", "0"] as const;
  assert.equal((await commandAt("review.before_commit", ...words(undone))).code, null);
  assert.equal((await commandAt("review.after_commit", ...words(done))).code, null);
  const changes = await installation.database.db.query(
    `select review.status, count(review_change.ordinal)::int as changes
     from review left join review_change on review_id = review.id where review.id = any($1)
     group by review.id order by review.id = $2`,
    [[undone, done], done],
  );
  assert.deepEqual(changes, [
    { status: "open", changes: 0 },
    { status: "approved", changes: 2 },
  ]);
  const caller = openCaller(service.url, key);
  assert.deepEqual(
    (await outputOf(caller, second)).map(({ n }) => n),
    [1, "two"],
  );
  // Decided again; and the worker that carries it on dies.
  await service.end("SIGKILL");
  await approve(undone, [{ at: "edit", ordinal: 2, data: { n: "two" } }], 0);
  const next = await installation.serveProcess();
  assert.deepEqual(
    (await outputOf(openCaller(next.url, key), first)).map(({ n }) => n),
    [1, "two"],
  );
  await next.end("SIGKILL");
});

const DECIDING = ["review.before_commit", "review.after_commit"];

for (const point of inTier(DECIDING, (each) => each === "review.after_commit")) {
  test(`killed at ${point} of a timeout, the review times out once all the same`, async () => {
    const dying = await installation.serveProcess({ LATCHKEY_FAILPOINTS: `${point}=kill` });
    const [approving, failing] = [await trigger(dying, "approves"), await trigger(dying, "fails")];
    await untilDead(dying);
    const service = await installation.serveProcess();
    const caller = openCaller(service.url, key);
    assert.deepEqual(
      (await outputOf(caller, approving)).map(({ n }) => n),
      [0, 1, 2],
    );
    assert.equal((await caller.waitForRun(failing)).body.status, "failed");
    const rows = await installation.database.db.query<{ status: string; kind: string | null }>(
      `select review.status, run.error_kind as kind from review join run on run.id = run_id
       where run_id = any($1) order by run_id = $2`,
      [[approving, failing], failing],
    );
    assert.deepEqual(rows, [
      { status: "timed_out", kind: null },
      { status: "timed_out", kind: "review_timeout" },
    ]);
    await service.end("SIGKILL");
  });
}
