// docs/blueprints.md#files: `save: file` of an `http` node.
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { after, before, test } from "node:test";
import { until } from "../eventually.ts";
import { blueprint, dataOf, openBench, type Bench } from "./bench.ts";

const TOKEN = "token-of-the-caller-1234";
let bench: Bench;
before(async () => {
  bench = await openBench([
    `strategy: strat_files
account: acme
hosts: ["{TARGET}"]
fields: [{ key: token, label: Token, type: password }]
login: { type: bearer, token: token }`,
  ]);
});
after(async () => await bench?.[Symbol.asyncDispose]());

const COPY = `- id: copy
  type: http
  credential: it
  effect: read
  request: { method: POST, url: /copy, file: got }
  records: $
- { id: out, type: output, refKey: out, from: copy }`;
const GET = `- { id: got, type: http, credential: it, request: { url: /report }, save: file }`;

async function run(key: string, nodes: string, report: object) {
  bench.target.on("GET /report", report);
  bench.target.on("POST /copy", { json: { ok: true } });
  await bench.apply(blueprint(key, nodes, "credentials: { it: { strategy: strat_files } }"));
  const credential_id = await bench.connect("strat_files", { token: TOKEN });
  const ended = await bench.run(key, { credential_id });
  assert.equal(ended.status.status, "completed", String(ended.detail));
  return ended;
}

test("whatever the bytes are, small or large, they go on as they came", async () => {
  for (const size of [0, 3, 8_192, 8_193, 900_000]) {
    const bytes = randomBytes(size);
    const headers = {
      "content-disposition": 'attachment; filename="raw.bin"',
      "content-type": "image/x-raw",
    };
    await run("bytes", `${GET}\n${COPY}`, { bytes, headers });
    const copy = bench.target.seen("POST /copy").at(-1);
    assert.deepEqual(copy?.bytes, bytes, `${size} bytes`);
    assert.equal(copy?.headers["content-type"], "image/x-raw");
  }
});

test("a parse node reads it, as a file with the charset that it came with", async () => {
  const ended = await run(
    "parsed",
    `${GET}
- { id: rows, type: parse, from: got, format: csv }
- { id: out, type: output, refKey: out, from: rows }`,
    { bytes: Buffer.from("name,n\nJosé,1\n", "utf8"), headers: { "content-type": "text/csv" } },
  );
  assert.deepEqual(dataOf(ended), [{ name: "José", n: "1" }]);
});

test("after a wait for a person the file is the journal's: the target is not asked again", async () => {
  const asked = bench.target.seen("GET /report").length;
  bench.target.on("GET /report", {
    text: `a,b\n1,${"x".repeat(20_000)}\n`,
    headers: { "content-type": "text/csv", "content-disposition": "attachment; filename*=UTF-8''%C3%A9.csv" },
  });
  await bench.apply(
    blueprint(
      "reviewed",
      `${GET}
- { id: rows, type: parse, from: got, format: csv }
- { id: gate, type: review, from: rows, title: Look }
- id: copy
  type: http
  credential: it
  for_each: gate
  effect: read
  request: { method: POST, url: /copy, multipart: { f: { file: got } } }
- { id: out, type: output, refKey: out, from: copy }`,
      "credentials: { it: { strategy: strat_files } }",
    ),
  );
  const credential_id = await bench.connect("strat_files", { token: TOKEN });
  const { body } = await bench.trigger("reviewed", { credential_id });
  await until("it waits for a review", async () => {
    const { body: status } = await bench.caller.get(`/blueprint-runs/${body.id}/status`);
    assert.equal(status.ended_at, null);
    return status.progress_step === "awaiting_review";
  });
  const [review] = await bench.installation.database.db.query<{ id: string }>(
    "select id from review where run_id = $1",
    [body.id],
  );
  const approved = await bench.installation.command("reviews", "approve", String(review?.id));
  assert.equal(approved.code, 0, approved.stderr);
  const ended = await bench.ended(body.id);
  assert.equal(ended.status.status, "completed", String(ended.detail));
  assert.equal(bench.target.seen("GET /report").length, asked + 1);
  const copy = bench.target.seen("POST /copy").at(-1);
  const form = await new Response(new Uint8Array(copy?.bytes ?? []), {
    headers: { "content-type": String(copy?.headers["content-type"]) },
  }).formData();
  const file = form.get("f") as File;
  assert.deepEqual([file.name, file.type, file.size], ["é.csv", "text/csv", 20_007]);
});

test("a target that puts the credential into a file does not get it stored", async () => {
  for (const bytes of [
    Buffer.from(`{"token":"${TOKEN}","n":1}`),
    Buffer.concat([Buffer.from([0, 255, 254, 128]), Buffer.from(`..${TOKEN}..`), Buffer.from([255])]),
  ]) {
    const headers = { "content-disposition": `attachment; filename="${TOKEN}.csv"` };
    const ended = await run("echo", `${GET}\n${COPY}`, { bytes, headers });
    assert.doesNotMatch(bench.target.seen("POST /copy").at(-1)?.bytes.toString("latin1") ?? "", /token-of/);
    const rows = await bench.installation.database.db.query<{ all: string }>(
      `select encode(coalesce(output, ''), 'escape') || encode(filename, 'escape') || encode(log, 'escape') as all
       from run_step where run_id = $1 and node_id = 'got'`,
      [ended.id],
    );
    assert.match(rows[0]?.all ?? "", /REDACTED.*"message":"redacted"/s);
    assert.doesNotMatch(rows[0]?.all ?? "", /token-of/);
  }
});
