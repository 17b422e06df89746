// The whole service with its objects in S3: what callers, runs, the sweep, the purge and the doctor see of it.
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, afterEach, before, test } from "node:test";
import { brotliDecompressSync } from "node:zlib";
import { CreateBucketCommand, ListObjectsV2Command, PutObjectCommand, S3Client } from "@aws-sdk/client-s3";
import { checkStore } from "#actions/upkeep/check-store.ts";
import { openS3Store } from "#blobs/s3-store.ts";
import { moveClock } from "../clock.ts";
import { until } from "../eventually.ts";
import { connect, openCaller, type Caller } from "../caller.ts";
import { runHousekeeping } from "../flow/run-history.ts";
import {
  LEDGER_LOGIN,
  ledgerDocuments,
  startTarget,
  type Target,
  type TargetRequest,
} from "../flow/target.ts";
import { install, type Installation } from "../service.ts";
import { startGateway, whyNoGateway, type ObjectGateway } from "./radosgw.ts";
import { startMoto, type Moto } from "../vault/moto.ts";

const skip = whyNoGateway() ?? false;
const BUCKET = "latchkey";
const SECRET = "gateway-secret-of-the-tests";

const BLUEPRINT = `blueprint: filler
account: acme
retention: 1h
hosts: [TARGET]
nodes:
  - { id: file, type: input, refKey: file }
  - { id: lines, type: parse, from: file, format: json }
  - id: left
    type: http
    request: { method: GET, url: "TARGET/left" }
    records: items
  - id: right
    type: http
    request: { method: GET, url: "TARGET/right" }
    records: items
  - { id: few, type: filter, from: lines, where: small }
  - { id: out_tiny, type: output, refKey: tiny, from: few }
  - { id: out_file, type: output, refKey: file, from: lines }
  - { id: out_left, type: output, refKey: left, from: left }
  - { id: out_right, type: output, refKey: right, from: right }`;
const ITEMS = 400;
/** Compressed more than a part of an upload. */
const MANY_ITEMS = 950;
const ITEM_BYTES = 8_000;

let target: Target;
let gateway: ObjectGateway;
let moto: Moto;
const installations: (Installation & AsyncDisposable)[] = [];

before(async () => {
  if (skip !== false) return;
  target = await startTarget(items);
  gateway = await startGateway();
  moto = await startMoto();
});
after(async () => {
  for (const installation of installations) await installation[Symbol.asyncDispose]();
  await gateway?.close();
  await moto?.stop();
  await target?.close();
});

/** 3.2 MB of text each that hardly gets smaller when it is compressed. */
function items({ path }: Pick<TargetRequest, "path">) {
  const text = (index: number): string => {
    let made = "";
    for (let part = 0; made.length < ITEM_BYTES; part++)
      made += createHash("sha512").update(`${path} ${index} ${part}`).digest("base64");
    return made.slice(0, ITEM_BYTES);
  };
  return { body: { items: Array.from({ length: countOf(path) }, (_, n) => ({ n, text: text(n) })) } };
}

const countOf = (path: string): number => (path === "/many" ? MANY_ITEMS : ITEMS);

interface Stage {
  readonly installation: Installation & AsyncDisposable;
  readonly s3: S3Client;
  readonly key: string;
}

async function stage(url: string, environment: Record<string, string>): Promise<Stage> {
  const all = {
    ...environment,
    LATCHKEY_S3_BUCKET: BUCKET,
    LATCHKEY_S3_PREFIX: "objects-of/latchkey",
    LATCHKEY_S3_ENDPOINT: url,
  };
  const installation = await install(all);
  installations.push(installation);
  const credentials = {
    accessKeyId: environment["AWS_ACCESS_KEY_ID"] ?? "",
    secretAccessKey: environment["AWS_SECRET_ACCESS_KEY"] ?? "",
  };
  const s3 = new S3Client({ endpoint: url, region: "us-east-1", forcePathStyle: true, credentials });
  await s3.send(new CreateBucketCommand({ Bucket: BUCKET }));
  await installation.apply("account: acme", BLUEPRINT.replaceAll("TARGET", target.url));
  return { installation, s3, key: await installation.createKey("acme") };
}

async function keys({ s3 }: Stage): Promise<readonly string[]> {
  const { Contents = [] } = await s3.send(new ListObjectsV2Command({ Bucket: BUCKET }));
  return Contents.map(({ Key }) => (Key ?? "").replace("objects-of/latchkey/", "")).toSorted();
}

async function trigger(caller: Caller): Promise<string> {
  const form = new FormData();
  form.set(
    "file",
    new Blob([JSON.stringify([{ small: true }, { small: false, text: "x".repeat(20_000) }])]),
    "a.json",
  );
  const { status, body } = await caller.post("/blueprints/filler/trigger", form);
  assert.equal(status, 202, JSON.stringify(body));
  return body.id;
}

let ceph: Stage;

async function complete(caller: Caller, runId: string): Promise<void> {
  assert.equal((await caller.waitForRun(runId, 100_000)).body.status, "completed");
}

async function recordsAt(url: string): Promise<readonly unknown[]> {
  const answer = await fetch(url);
  assert.equal(answer.status, 200);
  const json = JSON.parse(brotliDecompressSync(Buffer.from(await answer.arrayBuffer())).toString("utf8"));
  assert.equal(json.totalRecords, json.records.length);
  return json.records.map((record: any) => record.data);
}

test(
  "a run over 5 MB: inputs, steps and results are in the bucket, and its URLs are the store's own",
  { skip, timeout: 600_000 },
  async () => {
    ceph = await stage(gateway.url, gateway.environment);
    const { installation, key, s3 } = ceph;
    const { db } = installation.database;
    const service = await installation.serveProcess();
    const caller = openCaller(service.url, key);
    const runId = await trigger(caller);
    await complete(caller, runId);
    const kinds = (await keys(ceph)).map((name) => name.split("/")[0]);
    assert.deepEqual(kinds, [
      "inputs",
      "latchkey-installation",
      ...["results", "results", "results"],
      ...["steps", "steps"],
    ]);

    // Spec, GET /blueprint-runs/{runId}/results 1: "Requesting direct falls back automatically to presigned_url"
    const { body } = await caller.get(`/blueprint-runs/${runId}/results?deliveryMethod=direct`);
    assert.equal(body.dataDeliveryMethod, "presigned_url");
    const { left, right, tiny } = body.results as { left: string; right: string; tiny: string };
    assert.ok(left.startsWith(`${gateway.url}/${BUCKET}/objects-of/latchkey/results/`), left);
    assert.equal(new URL(left).searchParams.get("X-Amz-Expires"), "7200");
    assert.deepEqual(await recordsAt(left), items({ path: "/left" }).body.items);
    assert.deepEqual(await recordsAt(right), items({ path: "/right" }).body.items);
    // What is small is in its row, and the service's own to give.
    assert.ok(tiny.startsWith(`${service.url}/downloads/`), tiny);
    for (const [name, url] of Object.entries({ left, tiny })) await assertDownload(name, url);
    const signature = /Signature=(.)/.exec(left)?.[1] ?? "";
    const tampered = left.replace(/Signature=./, `Signature=${signature === "0" ? "1" : "0"}`);
    assert.equal((await fetch(tampered)).status, 403);
    // Spec, GET /blueprint-runs/{runId}/results 2: "Presigned URLs expire after two hours."; the database's clock signs them, the store's decides.
    for (const [ago, status] of [
      ["-1 hour -50 minutes", 200],
      ["-2 hours -1 minute", 403],
    ] as const) {
      await moveClock(db, ago);
      const old = await caller.get(`/blueprint-runs/${runId}/results`);
      assert.equal((await fetch(old.body.results.left)).status, status, ago);
    }
    await moveClock(db, "61 minutes");
    await runHousekeeping(db);
    assert.deepEqual(await keys(ceph), ["latchkey-installation"], "the purge removes the objects");
    assert.equal((await fetch(left)).status, 404);
    assert.equal((await caller.get(`/blueprint-runs/${runId}/results`)).status, 400);

    // What a process that was killed before COMMIT leaves is swept after 24 hours.
    const [account] = await db.query<{ id: string }>("select id from account");
    const orphan = `objects-of/latchkey/inputs/${account?.id}/${"o".repeat(24)}`;
    await s3.send(new PutObjectCommand({ Bucket: BUCKET, Key: orphan, Body: "x" }));
    for (const [later, left_] of [
      ["23 hours 50 minutes", 1],
      ["24 hours 10 minutes", 0],
    ] as const) {
      await moveClock(db, later);
      const swept = (): number => installation.logs().split('"swept the object store"').length;
      const times = swept();
      await db.query("select graphile_worker.add_job('sweep_objects')");
      await until("the sweep has run", () => swept() > times);
      const objects = (await keys(ceph)).filter((name) => name !== "latchkey-installation");
      assert.equal(objects.length, left_, later);
    }
    await moveClock(db, "0");
    assert.equal(await service.end(), 0);
  },
);

/** The same of every link, of the service and of the store. */
async function assertDownload(name: string, url: string): Promise<void> {
  const { headers, status } = await fetch(url, { headers: { range: "bytes=0-9" } });
  assert.equal(status, 206);
  assert.match(headers.get("content-range") ?? "", /^bytes 0-9\//);
  assert.equal(headers.get("content-length"), "10");
  assert.equal(headers.get("content-encoding"), null);
  assert.equal(headers.get("content-type"), "application/octet-stream");
  assert.equal(
    headers.get("content-disposition"),
    `attachment; filename="${name}.json.br"; filename*=UTF-8''${name}.json.br`,
  );
  assert.equal(headers.get("cache-control"), "private, no-store");
}

test(
  "with the store down, what needs it is 503, runs wait and go on, and nothing is lost",
  { skip, timeout: 600_000 },
  async () => {
    const { installation, key } = ceph;
    const service = await installation.serveProcess();
    const caller = openCaller(service.url, key);
    const hold = target.hold(({ path }) => path === "/left");
    const runId = await trigger(caller);
    await hold.reached;
    await gateway.kill();
    hold.release();
    // Runs, sessions and decisions without objects go on: taking the machine from its balancer would help nobody.
    assert.deepEqual(await readiness(service.url), { status: 200, body: { status: "ready" } });
    const form = new FormData();
    form.set("file", new Blob(["[]"]), "a.json");
    const refused = await caller.post("/blueprints/filler/trigger", form);
    assert.equal(refused.status, 503);
    assert.equal(refused.body.error.type, "internal_error");
    assert.match(refused.headers.get("retry-after") ?? "", /^\d+$/);
    await until("the run waits for the store", () =>
      installation.logs().includes("the run waits and will continue"),
    );
    assert.equal((await caller.get(`/blueprint-runs/${runId}/status`)).body.status, "running");
    const doctor = await installation.command("doctor");
    assert.equal(doctor.code, 1);
    assert.match(
      doctor.stdout,
      /wrong object store: .*bucket latchkey at .*can't be reached \(ECONNREFUSED\)/,
    );
    await gateway.start();
    await complete(caller, runId);
    const { body } = await caller.get(`/blueprint-runs/${runId}/results`);
    assert.deepEqual(await recordsAt(body.results.left), items({ path: "/left" }).body.items);
    assert.deepEqual(await recordsAt(body.results.right), items({ path: "/right" }).body.items);
    assert.equal(await service.end(), 0);
  },
);

const readiness = async (url: string): Promise<{ status: number; body: unknown }> => {
  const answer = await fetch(`${url}/readyz`);
  return { status: answer.status, body: await answer.json() };
};

test("a restore is reconciled and the bucket keeps what is in it", { skip, timeout: 600_000 }, async () => {
  const { installation, key } = ceph;
  await installation.apply(...ledgerDocuments(target.url));
  const api = await installation.serveProcess({}, ["api"]);
  const caller = openCaller(api.url, key);
  const back = await connect(caller, "strat_ledger", LEDGER_LOGIN);
  const { body: waiting } = await caller.post("/blueprints/ledger/trigger", { credential_id: back });
  assert.equal(await api.end(), 0);
  const objects = await keys(ceph);
  assert.ok(objects.length > 0, "the run before has left some");
  const file = join(installation.dataFolder, "collected.ndjson");
  writeFileSync(file, `{"v":1,"deleted":"${back}"}\n`);
  const { code, stdout, stderr } = await installation.command(
    ...["restore-reconcile", "--tombstones", file, "--json"],
  );
  assert.equal(code, 0, stderr);
  assert.deepEqual(JSON.parse(stdout), { tombstones: 1, deleted: 1, unreadable: 0, rows: 0 });
  const service = await installation.serveProcess();
  assert.deepEqual(await readiness(service.url), { status: 200, body: { status: "ready" } });
  const again = openCaller(service.url, key);
  assert.equal((await again.waitForRun(waiting.id, 100_000)).body.status, "failed");
  assert.equal((await again.delete(`/credentials/${back}`)).status, 404);
  assert.deepEqual(await keys(ceph), objects);
  assert.equal(await service.end(), 0);
});

test("the doctor tells what is wrong with the store by its name", { skip }, async () => {
  const { db } = ceph.installation.database;
  const settings = { bucket: BUCKET, prefix: "", region: "us-east-1", publicEndpoint: null, pathStyle: true };
  const check = async (changed: object, environment: Record<string, string> = {}): Promise<string | null> => {
    const before_ = { ...process.env };
    Object.assign(process.env, gateway.environment, environment);
    const store = openS3Store({ ...settings, endpoint: gateway.url, ...changed });
    return await checkStore(db, store).finally(() => Object.assign(process.env, before_));
  };
  assert.match((await check({ bucket: "not-made-yet" })) ?? "", /bucket not-made-yet at .* does not exist/);
  assert.match((await check({}, { AWS_SECRET_ACCESS_KEY: "wrong" })) ?? "", /secret access key is wrong/);
  assert.match((await check({ endpoint: moto.url, bucket: "none" })) ?? "", /does not exist/);
  // Ceph without a cluster gives the first bytes for any range: exactly what the doctor is for.
  assert.match((await check({})) ?? "", /^the object store returns other bytes than the requested range/);
  await moveClock(db, "10 minutes");
  assert.match((await check({})) ?? "", /a clock that is (59\d|60\d) s behind the database's/);
  await moveClock(db, "0");
});

// Of many parts, and in ranges: what Ceph without a cluster does not do right.
test(
  "steps and results of many parts are read as they were written, and links give any range",
  { skip, timeout: 600_000 },
  async () => {
    const { installation, key } = await stage(moto.url, {
      AWS_ACCESS_KEY_ID: "test",
      AWS_SECRET_ACCESS_KEY: SECRET,
      AWS_REGION: "us-east-1",
    });
    await installation.apply(`blueprint: filler
account: acme
hosts: [${target.url}]
nodes:
  - { id: file, type: input, refKey: file }
  - { id: read, type: http, request: { method: GET, url: "${target.url}/many" }, records: items }
  - { id: out, type: output, refKey: all, from: read }`);
    const service = await installation.serveProcess();
    const caller = openCaller(service.url, key);
    const runId = await trigger(caller);
    await complete(caller, runId);
    const { body } = await caller.get(`/blueprint-runs/${runId}/results`);
    assert.deepEqual(await recordsAt(body.results.all), items({ path: "/many" }).body.items);
    const whole = Buffer.from(await (await fetch(body.results.all)).arrayBuffer());
    assert.ok(whole.length > 5_242_880, `${whole.length} bytes are more than one part`);
    const part = await fetch(body.results.all, { headers: { range: "bytes=5242000-5243000" } });
    assert.equal(part.status, 206);
    assert.ok(Buffer.from(await part.arrayBuffer()).equals(whole.subarray(5_242_000, 5_243_001)));
    const doctor = await installation.command("doctor", "--deep");
    assert.equal(doctor.code, 0, doctor.stdout);
    assert.match(doctor.stdout, /ok +the object store can write, read, list and delete/);
    assert.equal(await service.end(), 0);
  },
);

afterEach(() => {
  for (const installation of installations) {
    assert.ok(!installation.logs().includes(SECRET), "no secret of the store is in the log");
    assert.doesNotMatch(installation.logs(), /X-Amz-Signature/);
  }
});
