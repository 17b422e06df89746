// docs/operate.md#latchkey-backup: one file moves an installation from a bucket to a folder of objects, and from a folder to a bucket.
import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { CreateBucketCommand, ListObjectsV2Command, S3Client } from "@aws-sdk/client-s3";
import { assertSameRows, openElsewhere, readAllRows, type Elsewhere } from "../backups/stage.ts";
import { openCaller, type Caller } from "../caller.ts";
import { install, type Installation } from "../service.ts";
import { startProcess } from "../service-process.ts";
import { startGateway, whyNoGateway } from "./radosgw.ts";

const skip = whyNoGateway() ?? false;
const BUCKET = "latchkey";
const ROWS = Array.from({ length: 4_000 }, (_, n) => ({ n, text: "x".repeat(100) }));
const DOCUMENTS = [
  "account: acme",
  `blueprint: rows
account: acme
nodes:
  - { id: given, type: input, refKey: file }
  - { id: lines, type: parse, from: given, format: json }
  - { id: out, type: output, refKey: out, from: lines }`,
];

async function upload(caller: Caller): Promise<string> {
  const form = new FormData();
  form.set("file", new Blob([JSON.stringify(ROWS)]), "rows.json");
  const { status, text, body } = await caller.post("/blueprints/rows/trigger", form);
  assert.equal(status, 202, text);
  assert.equal((await caller.waitForRun(body.id, 100_000)).body.status, "completed");
  return body.id;
}

/** The run's results and the same run again, which needs its input, at the place of a restore. */
async function assertServes(environment: Record<string, string>, key: string, run: string): Promise<void> {
  const service = await startProcess(environment, ["api", "worker"], () => {});
  try {
    const caller = openCaller(service.url, key);
    const { status, body } = await caller.get(`/blueprint-runs/${run}/results?deliveryMethod=direct`);
    assert.equal(status, 200);
    assert.equal(body.results.out.totalRecords, ROWS.length);
    await upload(caller);
  } finally {
    await service.end();
  }
}

async function move(from: Pick<Installation, "command">, file: string, to: Elsewhere): Promise<void> {
  const backup = await from.command("backup", file, "--json");
  assert.equal(backup.code, 0, backup.stderr);
  const { objects, missing } = JSON.parse(backup.stdout) as { objects: number; missing: number };
  assert.ok(objects >= 2, `an input and a result are objects, not ${objects}`);
  assert.equal(missing, 0);
  const restored = await to.command("restore", file);
  assert.equal(restored.code, 0, restored.stderr);
  assert.match(restored.stdout, new RegExp(`and ${objects} objects`));
}

test(
  "an installation moves out of a bucket, into a folder, and into a bucket again",
  { skip, timeout: 600_000 },
  async () => {
    await using opened = new AsyncDisposableStack();
    const gateway = await startGateway();
    opened.defer(async () => await gateway.close());
    const bucket = (prefix: string): Record<string, string> => ({
      ...gateway.environment,
      LATCHKEY_S3_BUCKET: BUCKET,
      LATCHKEY_S3_PREFIX: prefix,
      LATCHKEY_S3_ENDPOINT: gateway.url,
    });
    const credentials = {
      accessKeyId: gateway.environment["AWS_ACCESS_KEY_ID"] ?? "",
      secretAccessKey: gateway.environment["AWS_SECRET_ACCESS_KEY"] ?? "",
    };
    const s3 = new S3Client({
      endpoint: gateway.url,
      region: "us-east-1",
      forcePathStyle: true,
      credentials,
    });
    await s3.send(new CreateBucketCommand({ Bucket: BUCKET }));
    const installation = opened.use(await install(bucket("one")));
    await installation.apply(...DOCUMENTS);
    const key = await installation.createKey("acme");
    const service = await installation.serveProcess();
    const run = await upload(openCaller(service.url, key));
    await service.end();
    const rows = await readAllRows(installation.database.db);

    const folder = opened.use(await openElsewhere(installation));
    for (const name of Object.keys(bucket("one"))) delete folder.environment[name];
    await move(installation, join(installation.dataFolder, "out.latchkey"), folder);
    await assertSameRows(rows, folder.database.db);
    await assertServes(folder.environment, key, run);

    const again = opened.use(await openElsewhere(installation));
    Object.assign(again.environment, bucket("two"));
    await move(folder, join(installation.dataFolder, "back.latchkey"), again);
    const { Contents = [] } = await s3.send(new ListObjectsV2Command({ Bucket: BUCKET, Prefix: "two/" }));
    assert.ok(Contents.length > 4, "two runs' inputs and results, and the mark");
    await assertServes(again.environment, key, run);
    const doctor = await again.command("doctor", "--deep");
    // Ceph without a cluster gives the first bytes for any range (s3-service.pg.test.ts); nothing else is wrong.
    assert.match(
      doctor.stdout + doctor.stderr,
      /other bytes than the requested range[^]*One thing is wrong\./,
    );
  },
);
