// docs/custom-nodes.md: node types of operators, those of examples/nodes, from the file to the results.
import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { startPortal } from "../../examples/portal/portal.ts";
import { connect, openCaller } from "../caller.ts";
import { latchkey } from "../cli/program.ts";
import { exampleDocument, install } from "../service.ts";
import { openTarget } from "./target.ts";

const FOLDER = join(import.meta.dirname, "../../examples/nodes");
const setting = { LATCHKEY_NODE_FILES: join(FOLDER, "running_total.ts") };

test("a Blueprint with a node type of the operator's own runs; where the type is missing its runs fail and say so", async () => {
  await using opened = new AsyncDisposableStack();
  const portal = await startPortal({ port: 0 });
  opened.defer(async () => await portal.close());
  const installation = opened.use(await install(setting));
  await installation.apply(
    exampleDocument("account.yaml", portal.url),
    exampleDocument("strategies/northwind-portal.yaml", portal.url),
    /```yaml\n(.*?)```/s.exec(readFileSync(join(FOLDER, "README.md"), "utf8"))?.[1] ?? "",
  );
  const key = await installation.createKey("acme");
  const service = await installation.serveProcess();
  const caller = openCaller(service.url, key);
  const credential = await connect(caller, "strat_northwind_portal", {
    username: "demo",
    password: "correct horse battery staple",
  });
  const trigger = async (at: typeof caller): Promise<string> => {
    const accepted = await at.post("/blueprints/invoice-totals/trigger", { credential_id: credential }, {});
    assert.equal(accepted.status, 202, accepted.text);
    return accepted.body.id;
  };
  const first = await trigger(caller);
  assert.equal((await caller.waitForRun(first)).body.status, "completed");
  const results = await caller.get(`/blueprint-runs/${first}/results?deliveryMethod=direct`);
  const records: readonly { data: any }[] = results.body.results.totals.records;
  assert.equal(records.length, 240);
  const sums = new Map<string, number>();
  for (const { data } of records) {
    sums.set(data.supplier, (sums.get(data.supplier) ?? 0) + data.total);
    assert.equal(data.so_far, sums.get(data.supplier));
  }
  assert.ok(sums.size > 1);
  await service.end();

  // docs/decisions/0031: what was applied with the type keeps its version; only this process can't carry it.
  const without = await installation.serveProcess({ LATCHKEY_NODE_FILES: "" });
  const second = await trigger(openCaller(without.url, key));
  const { body } = await openCaller(without.url, key).waitForRun(second);
  assert.equal(body.status, "failed");
  const [row] = await installation.database.db.query<{ detail: string }>(
    "select error_detail as detail from run where id = $1",
    [second],
  );
  assert.equal(
    row?.detail,
    'Node sums: this worker has no node type "running_total"; a type of your own needs its file in LATCHKEY_NODE_FILES. ' +
      "Add it there, and start the worker again.",
  );

  // `doctor` says it before a run fails; with the file it has nothing to say.
  const doctor = async (files: string) =>
    await latchkey(["doctor"], { ...installation.environment, LATCHKEY_NODE_FILES: files });
  assert.match(
    (await doctor("")).stdout,
    /^wrong node type running_total: the node sums of the Blueprint acme\/invoice-totals uses it, but this process does not have it\. Name its file in LATCHKEY_NODE_FILES/m,
  );
  assert.doesNotMatch((await doctor(setting.LATCHKEY_NODE_FILES)).stdout, /node type running_total/);

  // A file that is wrong stops the start.
  await without.end();
  await assert.rejects(
    installation.serveProcess({ LATCHKEY_NODE_FILES: "/nowhere/total.ts" }),
    (error: Error) =>
      /\/nowhere\/total\.ts: the file does not exist; correct the path, or remove it from the list\./.test(
        error.message,
      ),
  );
});

test("the node of docs/custom-nodes.md that sends: its answer as a text, and a refusal with how it begins", async () => {
  await using target = await openTarget();
  const folder = mkdtempSync(join(tmpdir(), "latchkey-motd-"));
  const page = readFileSync(join(FOLDER, "../../docs/custom-nodes.md"), "utf8");
  const [, node = ""] = /```ts\n(\/\/ nodes\/motd\.ts\n.*?)```/s.exec(page) ?? [];
  writeFileSync(join(folder, "motd.ts"), node);
  writeFileSync(
    join(folder, "motd.yaml"),
    `blueprint: motd\naccount: acme\nhosts: ["${target.url}"]\nnodes:
  - { id: word, type: motd, path: "${target.url}/motd" }
  - { id: rows, type: parse, from: word, format: csv }
  - { id: out, type: output, refKey: out, from: rows }\n`,
  );
  const run = async () =>
    await latchkey(["run", join(folder, "motd.yaml")], {
      LATCHKEY_NODE_FILES: join(folder, "motd.ts"),
      LATCHKEY_EGRESS_ALLOW: "127.0.0.0/8",
    });
  target.on("GET /motd", ({ query, headers }) => ({
    text: `lang,accept\n${query.get("lang")},${headers.accept}\n`,
  }));
  const good = await run();
  assert.equal(good.code, 0, good.stderr);
  assert.match(good.stdout, /en +text\/plain/);
  target.on("GET /motd", { status: 410, text: "No words any more." });
  const gone = await run();
  assert.match(
    gone.stderr,
    /^Node word: GET \S+\/motd returned 410; expected 200\.\nThe answer: 410 from \S+\/motd\?lang=… \(text\/plain; charset=utf-8\)\n {2}No words any more\.$/m,
  );
  rmSync(folder, { recursive: true });
});
