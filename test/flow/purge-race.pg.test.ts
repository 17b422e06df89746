// docs/decisions/0029: beside a purge each response is a whole 200 or a 400, and a presigned URL is 404 after it.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { brotliDecompressSync } from "node:zlib";
import { CreateBucketCommand, S3Client } from "@aws-sdk/client-s3";
import { moveClock } from "../clock.ts";
import { startGateway, whyNoGateway, type ObjectGateway } from "../blobs/radosgw.ts";
import { openCaller, type Caller } from "../caller.ts";
import { install, type Installation } from "../service.ts";
import { testInAll } from "../tiers.ts";
import { runHousekeeping } from "./run-history.ts";
import { startTarget, type Target } from "./target.ts";

const skip = whyNoGateway() ?? false;
const READERS = 50;
const BUCKET = "latchkey-race";
const ITEMS = Array.from({ length: 40 }, (_, n) => ({ n, text: `${n} `.repeat(800) }));

let target: Target;
let gateway: ObjectGateway | undefined;
const installations: (Installation & AsyncDisposable)[] = [];

before(async () => {
  target = await startTarget(() => ({ body: { items: ITEMS } }));
});
after(async () => {
  for (const installation of installations) await installation[Symbol.asyncDispose]();
  await gateway?.close();
  await target?.close();
});

async function stage(environment: Record<string, string>): Promise<[Installation, Caller]> {
  const installation = await install(environment);
  installations.push(installation);
  await installation.apply(
    "account: acme\nrate_limit: off",
    `blueprint: race
account: acme
retention: 1h
hosts: [${target.url}]
nodes:
  - { id: read, type: http, request: { method: GET, url: "${target.url}/" }, records: items }
  - { id: large, type: output, refKey: large, from: read }
  - { id: again, type: output, refKey: again, from: read }
  - { id: few, type: filter, from: read, where: n = 3 }
  - { id: small, type: output, refKey: small, from: few }`,
  );
  // A process of its own: the AWS SDK reads its credentials from the environment of the process.
  const { url } = await installation.serveProcess();
  return [installation, openCaller(url, await installation.createKey("acme"))];
}

async function race(installation: Installation, caller: Caller): Promise<void> {
  const { db } = installation.database;
  const { body } = await caller.post("/blueprints/race/trigger", {});
  assert.equal((await caller.waitForRun(body.id, 100_000)).body.status, "completed");
  const path = `/blueprint-runs/${body.id}/results`;
  const whole = (await caller.get(`${path}?deliveryMethod=direct`)).text;
  assert.equal(JSON.parse(whole).results.large.totalRecords, ITEMS.length);
  const links = Object.values<string>((await caller.get(path)).body.results);
  const contents = await Promise.all(links.map(async (url) => brotli(await fetch(url))));
  assert.equal(contents.length, 3);

  let isOver = false;
  const seen = { whole: 0, purged: 0, links: 0, gone: 0 };
  const readDirect = async (): Promise<void> => {
    const answer = await caller.get(`${path}?deliveryMethod=direct`);
    if (answer.status === 200) {
      assert.equal(answer.text, whole);
      seen.whole++;
    } else {
      assert.equal(answer.status, 400, answer.text);
      assert.equal(answer.body.error.details[0].code, "run_data_purged");
      seen.purged++;
    }
  };
  const readLink = async (index: number): Promise<void> => {
    const answer = await fetch(links[index] ?? "");
    if (answer.status === 200) {
      assert.equal(await brotli(answer), contents[index]);
      seen.links++;
    } else {
      assert.equal(answer.status, 404, await answer.text());
      seen.gone++;
    }
  };
  const readers = Array.from({ length: READERS }, async (_, reader) => {
    // Once more after the purge.
    for (let last = false; !last;) {
      last = isOver;
      await (reader % 2 === 0 ? readDirect() : readLink(reader % links.length));
    }
  });
  const racing = Promise.all(readers);
  const isUnderway = async (): Promise<void> => {
    while (seen.whole < READERS || seen.links < READERS) await sleep(10);
  };
  await Promise.race([racing, isUnderway()]);
  // Links stay good: it is the data whose time is over.
  await moveClock(db, "61 minutes");
  await runHousekeeping(db);
  isOver = true;
  await racing;
  await moveClock(db, "0");
  assert.ok(seen.purged >= READERS / 2 && seen.gone >= READERS / 2, JSON.stringify(seen));
  const rows = await db.query(`select 1 from run_result where run_id = $1`, [body.id]);
  assert.equal(rows.length, 0);
}

async function brotli(answer: Response): Promise<string> {
  return brotliDecompressSync(Buffer.from(await answer.arrayBuffer())).toString("utf8");
}

test("a purge racing 50 readers: each gets all of it or is told that it is purged (folder)", async () => {
  await race(...(await stage({})));
});

testInAll(
  "the same race with objects in a folder",
  "a purge racing 50 readers: each gets all of it or is told that it is purged (S3)",
  { skip, timeout: 600_000 },
  async () => {
    gateway = await startGateway();
    const { environment, url } = gateway;
    const credentials = {
      accessKeyId: environment["AWS_ACCESS_KEY_ID"] ?? "",
      secretAccessKey: environment["AWS_SECRET_ACCESS_KEY"] ?? "",
    };
    const s3 = new S3Client({ endpoint: url, region: "us-east-1", forcePathStyle: true, credentials });
    await s3.send(new CreateBucketCommand({ Bucket: BUCKET }));
    const settings = { LATCHKEY_S3_BUCKET: BUCKET, LATCHKEY_S3_ENDPOINT: url };
    await race(...(await stage({ ...environment, ...settings })));
  },
);
