// `latchkey runs list | show | watch | purge`.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { openCaller, type Caller } from "../caller.ts";
import { startTarget, type Target } from "../flow/target.ts";
import { install } from "../service.ts";

let target: Target;
let installation: Awaited<ReturnType<typeof install>>;
let caller: Caller;
const ids: string[] = [];

before(async () => {
  target = await startTarget(({ path }) =>
    path === "/good" ? { body: { items: [{ n: 1 }] } } : { status: 404 },
  );
  installation = await install();
  const blueprint = (key: string): string => `blueprint: ${key}
account: acme
hosts: [${target.url}]
metadata: [{ name: order }]
nodes:
  - { id: read, type: http, request: { method: GET, url: "${target.url}/${key}" }, records: items }
  - { id: out, type: output, refKey: items, from: read }`;
  await installation.apply("account: acme", "account: other", blueprint("good"), blueprint("bad"));
  caller = openCaller((await installation.serve()).url, await installation.createKey("acme"));
  for (const [key, order] of [
    ["good", "A-1"],
    ["good", "A-2"],
    ["bad", "A-1"],
  ] as const) {
    const { body } = await caller.post(`/blueprints/${key}/trigger`, { order, run_name: `Order ${order}` });
    await caller.waitForRun(body.id, 100_000);
    ids.push(body.id);
  }
});

after(async () => {
  await installation?.[Symbol.asyncDispose]();
  await target?.close();
});

async function listed(...options: string[]): Promise<{ items: any[]; next_cursor: string | null }> {
  const { code, stdout, stderr } = await installation.command("runs", "list", "--json", ...options);
  assert.equal(code, 0, stderr);
  return JSON.parse(stdout);
}

test("runs are listed newest first, by every filter, page by page", { timeout: 600_000 }, async () => {
  const [first = "", second = "", failed = ""] = ids;
  const page = await listed("--limit", "2");
  assert.deepEqual(
    page.items.map(({ id }) => id),
    [failed, second],
  );
  const rest = await listed("--limit", "2", "--cursor", String(page.next_cursor));
  assert.deepEqual([rest.items.map(({ id }) => id), rest.next_cursor], [[first], null]);
  for (const [options, expected] of [
    [["--status", "failed", "--blueprint", "bad", "--account", "acme"], [failed]],
    [
      ["--name", "Order A-1", "--metadata", "order=A-1", "--until", "2999-01-01"],
      [failed, first],
    ],
    [["--metadata", "order=A-1", "--metadata", "other=x"], []],
    [
      ["--metadata", "order=A-1", "--metadata", "order=A-1"],
      [failed, first],
    ],
    [["--name", "rder"], []],
    [["--since", "2999-01-01"], []],
    [["--account", "other"], []],
  ] as const)
    assert.deepEqual(
      (await listed(...options)).items.map(({ id }) => id),
      expected,
      options.join(" "),
    );
  const table = await installation.command("runs", "list", "--limit", "1");
  assert.match(
    table.stdout,
    new RegExp(`^ID +ACCOUNT +BLUEPRINT.*\\n${failed} +acme +bad +Order A-1 .* Failed \\(target\\)`),
  );
  for (const [options, says] of [
    [["--cursor", "run_none"], /`cursor`/],
    [["--limit", "0"], /must be a number from 1/],
    [["--account", "nobody"], /There is no such account/],
    [["--status", "lost"], /Allowed choices are queued/],
    [["--since", "yesterday"], /must be a date or a time/],
    [["--metadata", "order"], /must be name=value/],
  ] as const) {
    const refused = await installation.command("runs", "list", ...options);
    assert.notEqual(refused.code, 0);
    assert.match(refused.stderr, says);
  }
});

test(
  "a run is shown with its steps and its redacted error, watched to its end, and purged with when and why",
  { timeout: 600_000 },
  async () => {
    const [done = "", , failed = ""] = ids;
    const shown = await installation.command("runs", "show", failed);
    assert.match(shown.stdout, /error +Node read: .*404/);
    assert.match(shown.stdout, /read +Failed +1 /);
    const json = JSON.parse((await installation.command("runs", "show", done, "--json")).stdout);
    assert.deepEqual(json.metadata, { order: "A-1" });
    assert.deepEqual(json.results, [
      { key: "items", total_records: 1, json_bytes: json.results[0].json_bytes },
    ]);
    assert.deepEqual(
      json.steps.map((step: any) => [step.node, step.status, step.records_total]),
      [["read", "done", 1]],
    );
    const watched = await installation.command("runs", "watch", done);
    assert.deepEqual([watched.code, watched.stdout], [0, "Completed\n"]);
    assert.equal((await installation.command("runs", "watch", failed)).code, 1);

    const purged = await installation.command("runs", "purge", json.run_key);
    assert.deepEqual([purged.code, purged.stdout], [0, `Purged ${done}.\n`], purged.stderr);
    assert.equal((await caller.get(`/blueprint-runs/${done}/results`)).status, 400);
    assert.equal((await caller.get(`/blueprint-runs/${done}/status`)).body.status, "completed");
    const tombstone = await installation.command("runs", "show", done);
    assert.match(tombstone.stdout, /purged +\d{4}-\d\d-\d\d \d\d:\d\d:\d\d, by an operator/);
    assert.doesNotMatch(tombstone.stdout, /A-1/);
    const audit = await installation.database.db.query<{ actor: string }>(
      `select actor_kind as actor from audit_entry where action = 'run.purge' and subject_id = $1`,
      [done],
    );
    assert.deepEqual(audit, [{ actor: "cli" }]);
    const again = await installation.command("runs", "purge", done);
    assert.equal(again.code, 1);
    assert.match(again.stderr, /is already purged, or has not ended yet/);
    assert.equal((await installation.command("runs", "show", "run_none")).code, 1);
  },
);
