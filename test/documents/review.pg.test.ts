import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { moveClock } from "../clock.ts";
import { eventually } from "../eventually.ts";
import { runHousekeeping } from "../flow/run-history.ts";
import { dataOf, type Bench, type ResultRecord } from "./bench.ts";
import { edit, leaveOut, openReviewStage, ROWS, type ReviewStage } from "./review-stage.ts";
import { expectHeldJson } from "../cli/held-surface.ts";

// docs/blueprints.md#review: records as the reviewer left them; a rejected run becomes `cancelled`.

let stage: ReviewStage;
let bench: Bench;
let folder: string;

before(async () => {
  folder = mkdtempSync(join(tmpdir(), "latchkey-review-"));
  stage = await openReviewStage();
  bench = stage.bench;
});
after(async () => {
  await stage?.[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true, force: true });
});

const short = ({ data, errors, isValid }: ResultRecord) => [data, errors.map(({ code }) => code), isValid];

test("a run waits at its gate and holds nothing; approved, it goes on with the records as they came", async () => {
  // Spec, Blueprint run status: "a human review gate holds the run"
  const { run, review } = await stage.park("plain");
  const { body } = await bench.caller.get(`/blueprint-runs/${run}/status`);
  assert.deepEqual([body.status, body.progress_step], ["running", "awaiting_review"]);
  const [row] = await stage.db.query("select lease_owner, admitted_at from run where id = $1", [run]);
  assert.deepEqual(row, { lease_owner: null, admitted_at: null }, "no lease, no place among the active runs");
  assert.equal((await stage.approve(review)).kind, "decided");
  const ended = await bench.ended(run);
  assert.equal(ended.status.status, "completed", ended.detail ?? "");
  assert.deepEqual(ended.results["out"]?.records.map(short), [
    [{ n: 1 }, [], true],
    [{ n: -2 }, ["minimum"], false],
    [{ n: 13 }, ["rule"], false],
  ]);
});

test("edited records are checked anew by the validate before the gate, excluded ones are gone, the difference is kept", async () => {
  const { run, review } = await stage.park("plain", { rows: [...ROWS, { n: 4 }] });
  const edits = [edit(1, { n: 2, why: "sign" }), edit(2, { n: "x" }), edit(3, { n: 13 })];
  assert.equal((await stage.approve(review, { edits, exclusions: leaveOut(0) })).kind, "decided");
  const ended = await bench.ended(run);
  assert.deepEqual(ended.results["out"]?.records.map(short), [
    [{ n: 2, why: "sign" }, [], true],
    [{ n: "x" }, ["type"], false],
    [{ n: 13 }, ["rule"], false],
  ]);
  const changes = await stage.db.query(
    `select ordinal, change, convert_from(data, 'UTF8')::json as data from review_change where review_id = $1 order by ordinal`,
    [review],
  );
  assert.deepEqual(changes, [
    { ordinal: 0, change: "excluded", data: null },
    { ordinal: 1, change: "edited", data: { n: 2, why: "sign" } },
    { ordinal: 2, change: "edited", data: { n: "x" } },
    { ordinal: 3, change: "edited", data: { n: 13 } },
  ]);
  const audited = await stage.db.query(
    "select actor_kind, action, detail::json from audit_entry where subject_id = $1",
    [review],
  );
  assert.deepEqual(audited, [
    {
      actor_kind: "cli",
      action: "review.decide",
      detail: { node: "gate", decision: "approved", edited: 3, excluded: 1 },
    },
  ]);
  const [who] = await stage.db.query("select status, decided_by, reason from review where id = $1", [review]);
  assert.deepEqual(who, { status: "approved", decided_by: "ana", reason: "because" });
});

test("the check reaches through a filter; where no validate saw just this data, an edited record keeps its errors", async () => {
  const [through, without] = await Promise.all([
    stage.park("mapped", { rows: [{ n: 1 }, { n: 2, drop: true }, { n: -3 }] }),
    stage.park("unchecked"),
  ]);
  await Promise.all([
    stage.approve(through.review, { edits: [edit(1, { n: 3 })] }),
    stage.approve(without.review, { edits: [edit(1, { n: 3 })] }),
  ]);
  assert.deepEqual((await bench.ended(through.run)).results["out"]?.records.map(short), [
    [{ n: 1 }, [], true],
    [{ n: 3 }, [], true],
  ]);
  assert.deepEqual((await bench.ended(without.run)).results["out"]?.records.map(short)[1], [
    { n: 3 },
    ["minimum"],
    false,
  ]);
});

test("`when` false: nobody is asked, and the records go through, to several readers and to `$counts`", async () => {
  const [one, other] = await Promise.all([
    bench.run("asks", { rows: [{ n: 1 }, { n: 2 }], order: "7" }),
    bench.run("handles", { rows: ROWS, ask: false }),
  ]);
  assert.deepEqual(dataOf(one), [{ n: 1 }, { n: 2 }]);
  assert.deepEqual(dataOf(other, "out.valid"), [{ n: 1 }]);
  assert.deepEqual(dataOf(other, "out.counted"), [{ m: 1 }, { m: -2 }, { m: 13 }]);
  const asked = await stage.db.query("select 1 from review where run_id = any($1)", [[one.id, other.id]]);
  assert.equal(asked.length, 0);
});

test("bad changes are refused whole, with their lines, and change nothing", async () => {
  const { run, review } = await stage.park("plain");
  const deep = `{"ordinal":0,"data":{"a":${"[".repeat(600)}${"]".repeat(600)}}}`;
  const file = join(folder, "edits.ndjson");
  const refused = async (text: string, ...more: string[]): Promise<readonly string[]> => {
    writeFileSync(file, text);
    const { code, stderr } = await stage.latchkey("approve", review, "--edits", file, ...more);
    assert.equal(code, 1, stderr);
    return stderr.replaceAll(`${file}:`, "").trim().split("\n");
  };
  assert.deepEqual(
    await refused(
      '{"ordinal":0,"data":{"n":1}}\n\n{oops\n[1]\n{"ordinal":0}\n{"ordinal":1,"data":{},"isValid":true}',
    ),
    [
      "3: is not JSON",
      '4: must be an object, as in {"ordinal": 3, "data": {…}}',
      "5: the key `data` is missing",
      '6: has the key "isValid"; an edit has `ordinal` and `data`, and its errors are computed again',
      "Nothing was changed.",
    ],
  );
  assert.deepEqual(
    await refused(
      `{"ordinal":3,"data":{}}\n{"ordinal":1,"data":[]}\n{"ordinal":"2","data":{}}\n${deep}\n{"ordinal":0,"data":{}}`,
      "--exclude",
      "0,2,9",
    ),
    [
      "1: there is no record 3; the review has 0 to 2",
      "2: `data` must be an object: the record's data as a whole",
      "3: `ordinal` must be a whole number, from 0",
      "4: `data` is nested deeper than 500 levels",
      `5: record 0 is already changed at ${file}:4`.replaceAll(`${file}:`, ""),
      "--exclude: record 0 is already changed at 4",
      "--exclude: there is no record 9; the review has 0 to 2",
      "Nothing was changed.",
    ],
  );
  const fixed = await stage.park("fixed");
  const outcome = await stage.approve(fixed.review, { edits: [edit(0, { n: 1 })] });
  assert.ok(outcome.kind === "refused" && /allows no edits/.test(outcome.problems.join()));
  const left = await stage.db.query(
    `select count(*)::int as changes, (select count(*)::int from review where id = any($1) and status = 'open') as open
     from review_change where review_id = any($1)`,
    [[review, fixed.review]],
  );
  assert.deepEqual(left, [{ changes: 0, open: 2 }]);
  assert.equal((await stage.approve(fixed.review, { exclusions: leaveOut(1, 2) })).kind, "decided");
  assert.deepEqual(dataOf(await bench.ended(fixed.run)), [{ n: 1 }]);
  assert.equal((await stage.approve(review)).kind, "decided");
  assert.equal((await bench.ended(run)).status.status, "completed");
});

test("the command line lists, shows, edits and excludes, and rejects", async () => {
  const [one, other] = await Promise.all([
    stage.park("asks", { rows: ROWS, order: "PO-7" }),
    stage.park("plain"),
  ]);
  const listed = await stage.latchkey("list", "--run", one.run);
  assert.match(
    listed.stdout,
    new RegExp(`^records +${one.review} +acme +asks +gate .*Look \\(3 records, 2 invalid\\)`, "m"),
  );
  const { items: json } = JSON.parse(
    (await stage.latchkey("list", "--account", "acme", "--json")).stdout,
  ) as {
    items: readonly { kind: string; id: string }[];
  };
  assert.ok(
    [one, other].every(({ review }) => json.some(({ kind, id }) => kind === "records" && id === review)),
  );
  const shown = (await stage.latchkey("show", one.review)).stdout;
  assert.match(shown, /^Look\n\nOf PO-7\n/);
  assert.match(shown, /3 records, 2 invalid; they can be edited or excluded/);
  assert.match(shown, /^1 +no +-2 +n: must be >= 0$/m);
  const lines = (await stage.latchkey("show", one.review, "--json")).stdout.trim().split("\n");
  expectHeldJson("reviews show", JSON.parse(lines[0] ?? ""));
  assert.deepEqual(
    lines.map((line) => JSON.parse(line)).map(({ ordinal, data, isValid }) => [ordinal, data.n, isValid]),
    [
      [0, 1, true],
      [1, -2, false],
      [2, 13, false],
    ],
  );
  const file = join(folder, "fix.ndjson");
  writeFileSync(file, `\uFEFF{"ordinal":1,"data":{"n":2}}\r\n`);
  const approved = await stage.latchkey(
    "approve",
    one.review,
    "--edits",
    file,
    "--exclude",
    "2",
    "--by",
    "ana",
    "--reason",
    "sign",
  );
  assert.equal(approved.code, 0, approved.stderr);
  assert.match(approved.stdout, /^Approved, with 1 records edited and 1 excluded/);
  assert.deepEqual(dataOf(await bench.ended(one.run)), [{ n: 1 }, { n: 2 }]);
  assert.match(
    (await stage.latchkey("show", one.review)).stdout,
    /Approved \(1 edited, 1 excluded\) by ana at .*: sign/,
  );
  assert.equal((await stage.latchkey("reject", other.review)).code, 2);
  assert.equal((await stage.latchkey("reject", other.review, "--reason", "no")).code, 0);
  assert.equal((await bench.ended(other.run)).status.status, "cancelled");
  const again = await stage.latchkey("approve", other.review);
  assert.equal(again.code, 1);
  assert.match(again.stderr, /no longer open: Rejected by cli at .*: no\. Nothing was changed/);
  assert.match((await stage.latchkey("approve", "rev_nope")).stderr, /There is no review rev_nope/);
});

test("two gates with writes between them: each is decided by itself, and what was sent is not sent again", async () => {
  bench.target.on("POST /orders", { status: 201, json: {} });
  const run = await stage.park("two");
  await stage.approve(run.review, { edits: [edit(1, { n: 2 })], exclusions: leaveOut(0) });
  const second = await eventually("the second gate", async () => {
    const id = await stage.db.query<{ id: string }>(
      "select id from review where run_id = $1 and status = 'open'",
      [run.run],
    );
    return id[0]?.id;
  });
  assert.notEqual(second, run.review);
  assert.equal((await stage.approve(second, { exclusions: leaveOut(1) })).kind, "decided");
  const ended = await bench.ended(run.run);
  assert.deepEqual(dataOf(ended), [{ n: 2, status: 201 }]);
  const sent = bench.target.seen("POST /orders").map(({ body }) => JSON.parse(body));
  assert.deepEqual(sent, [
    { n: 2, at: 0 },
    { n: 13, at: 1 },
  ]);
});

test("20 decisions race, of this process and of commands: one counts, the others hear which", async () => {
  const { run, review } = await stage.park("plain");
  const [inside, outside] = await stage.atOnce(run, 20, async () => {
    const ours = Array.from({ length: 18 }, async (_, index) =>
      index % 2 === 0 ? await stage.approve(review, { exclusions: leaveOut(0) }) : await stage.reject(review),
    );
    const commands = ["approve", "reject"].map(
      async (verb) => await stage.latchkey(verb, review, "--reason", "x"),
    );
    return await Promise.all([Promise.all(ours), Promise.all(commands)]);
  });
  const won =
    inside.filter(({ kind }) => kind === "decided").length + outside.filter(({ code }) => code === 0).length;
  assert.equal(won, 1);
  for (const outcome of inside) {
    if (outcome.kind === "decided") continue;
    assert.ok(outcome.kind === "closed");
    assert.match(String(outcome.review.decidedBy), /^(ana|bob|cli)$/);
  }
  for (const { code, stderr } of outside)
    if (code !== 0) assert.match(stderr, /no longer open: (Approved|Rejected) .*by (ana|bob|cli) at/);
  const ended = await bench.ended(run);
  const [row] = await stage.db.query<{ status: string; changes: number }>(
    `select status, (select count(*)::int from review_change where review_id = review.id) as changes
     from review where id = $1`,
    [review],
  );
  assert.equal(ended.status.status, row?.status === "approved" ? "completed" : "cancelled");
  if (row?.status === "rejected") assert.equal(row.changes, 0);
});

test("a rejection races with a cancel, and an approval with the timeout: one of them ends or resumes the run", async () => {
  const [one, other] = [await stage.park("plain"), await stage.park("fails")];
  const [rejected, cancelled] = await stage.atOnce(
    one.run,
    2,
    async () =>
      await Promise.all([stage.reject(one.review), bench.caller.post(`/blueprint-runs/${one.run}/cancel`)]),
  );
  assert.equal(Number(rejected.kind === "decided") + Number(cancelled.status === 200), 1);
  assert.equal((await bench.ended(one.run)).status.status, "cancelled");
  await stage.db.query("update review set expires_at = app_now() + interval '50 ms' where id = $1", [
    other.review,
  ]);
  await new Promise((resolve) => setTimeout(resolve, 45));
  const outcome = await stage.approve(other.review);
  const ended = await bench.ended(other.run);
  assert.equal(ended.status.status, outcome.kind === "decided" ? "completed" : "failed");
});

test("a cancel, or a credential that is deleted, closes the review; what is decided after it does not count", async () => {
  // Whole, the token is redacted where it comes in; in parts that the Blueprint joins, where the review is stored.
  bench.target.on("GET /echo", ({ headers }) => ({
    json: [{ auth: headers.authorization, a: "sesame-4", b: "711-open" }],
  }));
  const credential = await bench.connect("strat_plain", { token: "sesame-4711-open" });
  const [cancelled, orphaned] = [
    await stage.park("plain"),
    await stage.park("secret", { credential_id: credential }),
  ];
  // A credential that only one run may use at a time is free while its run waits.
  const next = await stage.park("secret", { credential_id: credential });
  await stage.approve(next.review);
  assert.equal((await bench.ended(next.run)).status.status, "completed");
  const [stored] = await stage.db.query<{ title: string; instructions: string }>(
    "select convert_from(title, 'UTF8') as title, convert_from(instructions, 'UTF8') as instructions from review where id = $1",
    [orphaned.review],
  );
  assert.deepEqual(stored, { title: "Of Bearer [REDACTED], [REDACTED]", instructions: "[REDACTED]" });
  assert.equal((await bench.caller.post(`/blueprint-runs/${cancelled.run}/cancel`)).status, 200);
  assert.equal((await bench.caller.delete(`/credentials/${credential}`)).status, 204);
  for (const { run, review } of [cancelled, orphaned]) {
    const outcome = await stage.approve(review);
    assert.ok(outcome.kind === "closed" && outcome.review.status === "closed");
    assert.ok(!(await stage.latchkey("list", "--json")).stdout.includes(review));
    assert.match(
      (await stage.latchkey("reject", review, "--reason", "x")).stderr,
      /Closed: its run has ended/,
    );
    assert.equal((await bench.ended(run)).status.status, run === cancelled.run ? "cancelled" : "failed");
  }
});

test("parked time does not count towards the run's timeout", async () => {
  const { run, review } = await stage.park("short");
  await new Promise((resolve) => setTimeout(resolve, 3_500));
  await stage.approve(review);
  const ended = await bench.ended(run);
  assert.equal(ended.status.status, "completed", ended.detail ?? "");
});

test("edits and exclusions land on their places over many batches", async () => {
  const rows = Array.from({ length: 2_600 }, (_, n) => ({ n }));
  const { run, review } = await stage.park("plain", { rows });
  const places = rows.map(({ n }) => n);
  const edits = places.filter((n) => n % 3 === 0).map((n) => edit(n, { n: n + 10_000 }));
  const exclusions = leaveOut(...places.filter((n) => n % 3 === 1 && n < 2_000));
  assert.equal((await stage.approve(review, { edits, exclusions })).kind, "decided");
  const ended = await bench.ended(run);
  const expected = places.flatMap((n) => (n % 3 === 0 ? [n + 10_000] : n % 3 === 1 && n < 2_000 ? [] : [n]));
  assert.deepEqual(
    dataOf(ended).map(({ n }) => n),
    expected,
  );
});

// The last ones: they move the clock.
test("after its timeout nobody can decide: `fail` fails the run and `approve` lets it go on, by upkeep or by the next look", async () => {
  const [failing, approving] = [await stage.park("fails"), await stage.park("approves")];
  await moveClock(stage.db, "61 minutes");
  const late = await stage.approve(failing.review);
  assert.ok(late.kind === "closed" && late.review.status === "timed_out", late.kind);
  const [failed, approved] = [await bench.ended(failing.run), await bench.ended(approving.run)];
  assert.deepEqual([failed.status.status, failed.kind], ["failed", "review_timeout"]);
  assert.match(failed.detail ?? "", /Nobody decided the review of node gate within its timeout/);
  assert.deepEqual(failed.status.error, {
    code: "execution_failed",
    message: "The run did not complete. The operator's dashboard shows why.",
  });
  assert.equal(approved.status.status, "completed");
  assert.deepEqual(dataOf(approved), ROWS);
  assert.match((await stage.latchkey("reject", approving.review, "--reason", "x")).stderr, /Timed out at/);
});

test("the retention of an ended run takes its reviews, their records and their changes with it", async () => {
  const { run, review } = await stage.park("plain");
  await stage.approve(review, { edits: [edit(1, { n: 4 })] });
  await bench.ended(run);
  await moveClock(stage.db, "3 days");
  await runHousekeeping(stage.db);
  const left = await stage.db.query(
    `select (select count(*)::int from review where run_id = $1) as reviews,
       (select count(*)::int from review_change where review_id = $2) as changes,
       (select count(*)::int from blob where run_id = $1) as blobs`,
    [run, review],
  );
  assert.deepEqual(left, [{ reviews: 0, changes: 0, blobs: 0 }]);
});
