// docs/decisions/0026: a COMMIT whose answer is lost may have been done. What it names in the store must be there then.
import assert from "node:assert/strict";
import { after, afterEach, before, test } from "node:test";
import { eventually } from "../eventually.ts";
import { openCaller } from "../caller.ts";
import { startCommitProxy } from "../idempotency/commit-proxy.ts";
import { assertInvariants } from "../invariants.ts";
import { install } from "../service.ts";

const UPLOADS = `blueprint: uploads
account: acme
nodes:
  - { id: a, type: input, refKey: a }
  - { id: rows, type: parse, from: a, format: json }
  - { id: out, type: output, refKey: out, from: rows }`;
/** Longer than a service asks what became of its COMMIT. */
const DEAF_MS = 3_000;

let installation: Awaited<ReturnType<typeof install>>;
let key: string;

before(async () => {
  installation = await install();
  await installation.apply("account: acme", UPLOADS);
  key = await installation.createKey("acme");
});
afterEach(async () => await assertInvariants(installation));
after(async () => {
  await installation?.[Symbol.asyncDispose]();
});

test("an upload whose COMMIT is done and never answered: the retry replays it, and its file is there for the run", async () => {
  const proxy = await startCommitProxy(installation.database.connectionString);
  await using _ = { [Symbol.asyncDispose]: async () => await proxy.close() };
  const api = await installation.serveProcess({ DATABASE_URL: proxy.url }, ["api"]);
  const caller = openCaller(api.url, key);
  const upload = async () => {
    const form = new FormData();
    form.set("a", new Blob(['[{"n":7}]']), "rows.json");
    return await caller.post("/blueprints/uploads/trigger", form, { "idempotency-key": "cut" });
  };
  proxy.start(1, { deafMs: DEAF_MS });
  const lost = await upload();
  assert.equal(lost.status, 503, lost.text);
  assert.equal(proxy.cuts.after, 1);
  const replayed = await eventually("the retry is answered", async () => {
    const answer = await upload();
    return answer.status === 202 ? answer : undefined;
  });
  assert.equal(replayed.headers.get("idempotent-replay"), "true");
  const worker = await installation.serveProcess();
  const direct = openCaller(worker.url, key);
  assert.equal((await direct.waitForRun(replayed.body.id, 60_000)).body.status, "completed");
  const results = await direct.get(`/blueprint-runs/${replayed.body.id}/results?deliveryMethod=direct`);
  assert.deepEqual(results.body.results.out.records[0].data, { n: 7 });
  await worker.end("SIGKILL");
  await api.end("SIGKILL");
});
