import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { after, before, test } from "node:test";
import {
  CreateBucketCommand,
  CreateMultipartUploadCommand,
  ListObjectsV2Command,
  PutObjectCommand,
  S3Client,
  UploadPartCommand,
} from "@aws-sdk/client-s3";
import type { S3Settings } from "#blobs/s3-failures.ts";
import { openS3Store } from "#blobs/s3-store.ts";
import type { BlobStore } from "#blobs/store.ts";
import { openFrozenProxy } from "../flow/frozen-proxy.ts";
import { startMoto, type Moto } from "../vault/moto.ts";
import { startGateway, whyNoGateway, type ObjectGateway } from "./radosgw.ts";
import { bytesOf, largeBytes, testStore, textOf } from "./store-suite.ts";

const skip = whyNoGateway() ?? false;
if (skip !== false) console.log(`The S3 store is not tested: ${skip}.`);

const BUCKET = "latchkey-objects";
let gateway: ObjectGateway;
let moto: Moto;
let client: S3Client;
let store: BlobStore;

const settingsFor = (endpoint: string, changed: Partial<S3Settings> = {}): S3Settings => ({
  bucket: BUCKET,
  prefix: "some/where/",
  region: "us-east-1",
  endpoint,
  publicEndpoint: null,
  pathStyle: true,
  ...changed,
});

before(async () => {
  if (skip !== false) return;
  gateway = await startGateway();
  moto = await startMoto();
  Object.assign(process.env, gateway.environment);
  client = clientOf(gateway.url);
  for (const url of [gateway.url, moto.url])
    await clientOf(url).send(new CreateBucketCommand({ Bucket: BUCKET }));
  store = openS3Store(settingsFor(gateway.url));
});

after(async () => {
  await gateway?.close();
  await moto?.stop();
});

const clientOf = (endpoint: string): S3Client =>
  new S3Client({
    endpoint,
    region: "us-east-1",
    forcePathStyle: true,
    requestChecksumCalculation: "WHEN_REQUIRED",
  });

// Measured of Debian's 18.2.7 and 20.2.4: with SQLite below it, it gives the first bytes for any range, and an object that was sent
// in parts as its last part again and again. Its signatures and refusals are right.
const skipParts = skip === false ? "Ceph without a cluster does not do this right" : skip;
testStore("Ceph", () => store, { skip, skipParts });
testStore("moto", () => openS3Store(settingsFor(moto.url)), { skip });

const DOWNLOAD = {
  contentType: "application/octet-stream",
  contentDisposition: `attachment; filename="a.json.br"; filename*=UTF-8''%C3%A4.json.br`,
  cacheControl: "private, no-store",
  lifetimeMs: 7_200_000,
};

async function presigned(fromMs: number): Promise<string> {
  await store.put("results/acct_1/run_1/signed.json.br", bytesOf("hello world"));
  return (await store.presign("results/acct_1/run_1/signed.json.br", { ...DOWNLOAD, fromMs })) ?? "";
}

test(
  "a presigned URL is the store's own: GET and ranges, with our headers, and no other method",
  { skip },
  async () => {
    const url = await presigned(Date.now());
    assert.ok(url.startsWith(`${gateway.url}/${BUCKET}/some/where/results/`));
    const whole = await fetch(url);
    assert.equal(whole.status, 200);
    assert.equal(await whole.text(), "hello world");
    assert.equal(whole.headers.get("content-type"), DOWNLOAD.contentType);
    assert.equal(whole.headers.get("content-disposition"), DOWNLOAD.contentDisposition);
    assert.equal(whole.headers.get("cache-control"), DOWNLOAD.cacheControl);
    assert.equal(whole.headers.get("content-encoding"), null);
    const part = await fetch(url, { headers: { range: "bytes=0-4" } });
    assert.equal(part.status, 206);
    assert.equal(part.headers.get("content-range"), "bytes 0-4/11");
    assert.equal(await part.text(), "hello");
    for (const method of ["PUT", "DELETE"]) assert.equal((await fetch(url, { method })).status, 403, method);
    assert.equal(await (await fetch(url)).text(), "hello world");
  },
);

test(
  "a presigned URL with any part changed is refused, and so is one whose time is over or not begun",
  { skip },
  async () => {
    const url = new URL(await presigned(Date.now()));
    for (const name of url.searchParams.keys()) {
      if (name === "x-id") continue;
      const changed = new URL(url);
      const old = url.searchParams.get(name) ?? "";
      changed.searchParams.set(
        name,
        name === "X-Amz-Expires" ? "604800" : `${old.slice(0, -1)}${old.endsWith("0") ? "1" : "0"}`,
      );
      assert.ok([400, 403].includes((await fetch(changed)).status), name);
    }
    const other = new URL(url);
    other.pathname = other.pathname.replace("signed", "another");
    assert.equal((await fetch(other)).status, 403);
    const bare = new URL(url);
    bare.search = "";
    assert.equal((await fetch(bare)).status, 403);
    assert.equal((await fetch(await presigned(Date.now() - 7_201_000))).status, 403, "its time is over");
    assert.equal((await fetch(await presigned(Date.now() - 7_000_000))).status, 200, "it is not");
  },
);

test("credentials that end before the URL would: none is given", { skip }, async () => {
  const soon = new Date(Date.now() + 3_600_000).toISOString();
  Object.assign(process.env, { AWS_CREDENTIAL_EXPIRATION: soon });
  try {
    const passing = openS3Store(settingsFor(gateway.url));
    assert.equal(await passing.presign("results/a/b/c", { ...DOWNLOAD, fromMs: Date.now() }), null);
    assert.match(
      (await passing.presign("results/a/b/c", { ...DOWNLOAD, lifetimeMs: 60_000, fromMs: Date.now() })) ?? "",
      /^http/,
    );
  } finally {
    delete process.env["AWS_CREDENTIAL_EXPIRATION"];
  }
});

test("callers may reach the store at another address than the service", { skip }, async () => {
  const publicEndpoint = "https://files.example.test";
  const elsewhere = openS3Store(settingsFor(gateway.url, { publicEndpoint }));
  const url = await elsewhere.presign("results/a/b/c", { ...DOWNLOAD, fromMs: Date.now() });
  assert.ok(url?.startsWith(`${publicEndpoint}/${BUCKET}/some/where/results/a/b/c?`), url ?? "");
});

test("objects without the prefix are none of ours, and are left alone", { skip }, async () => {
  const foreign = { Bucket: BUCKET, Key: "inputs/acct_6/foreign", Body: "x" };
  await client.send(new PutObjectCommand(foreign));
  await store.put("inputs/acct_6/own", bytesOf("x"));
  await store.removeAll("inputs/acct_6/");
  assert.deepEqual(await Array.fromAsync(store.list("inputs/acct_6/", 10)), []);
  const left = await client.send(new ListObjectsV2Command({ Bucket: BUCKET, Prefix: "inputs/" }));
  assert.deepEqual(
    left.Contents?.map(({ Key }) => Key),
    [foreign.Key],
  );
});

// Ceph without a cluster does not list the uploads that were never finished; moto does.
test(
  "an upload that was never finished is found by its age, and goes; a prefix takes those below it",
  { skip },
  async () => {
    const [other, s3] = [openS3Store(settingsFor(moto.url)), clientOf(moto.url)];
    const begin = async (name: string): Promise<void> => {
      const at = { Bucket: BUCKET, Key: `some/where/${name}` };
      const { UploadId } = await s3.send(new CreateMultipartUploadCommand(at));
      await s3.send(new UploadPartCommand({ ...at, UploadId, PartNumber: 1, Body: Buffer.alloc(5_242_880) }));
    };
    for (const name of ["steps/acct_1/run_1/a", "steps/acct_1/run_10/a", "inputs/acct_1/b"])
      await begin(name);
    // It gives every one of them the same date, of 2010.
    const [past, future] = [new Date("2000-01-01"), new Date()];
    assert.deepEqual(await Array.fromAsync(other.listUnfinished(past)), []);
    assert.equal(await other.removeUnfinished(past), 0);
    await other.removeAll("steps/acct_1/run_1/");
    assert.deepEqual((await Array.fromAsync(other.listUnfinished(future))).toSorted(), [
      "inputs/acct_1/b",
      "steps/acct_1/run_10/a",
    ]);
    assert.equal(await other.removeUnfinished(future), 2);
    assert.deepEqual(await Array.fromAsync(other.listUnfinished(future)), []);
  },
);

test("each way in which the store refuses is told by name, and never with a secret", { skip }, async () => {
  const says = async (
    settings: S3Settings,
    environment: Record<string, string>,
    text: RegExp,
  ): Promise<void> => {
    const before_ = { ...process.env };
    Object.assign(process.env, environment);
    try {
      for (const attempt of [
        async () => openS3Store(settings).put("inputs/acct_1/x", bytesOf("x")),
        async () => textOf(openS3Store(settings).open("inputs/acct_1/x")),
        async () => openS3Store(settings).remove(["inputs/acct_1/x"]),
      ])
        await assert.rejects(attempt, (error: Error) => {
          assert.equal(error.name, "StoreFailed");
          assert.match(error.message, text);
          assert.doesNotMatch(error.message, /gateway-secret|wrong-secret|Signature=/);
          return true;
        });
    } finally {
      for (const name of Object.keys(environment)) process.env[name] = before_[name];
    }
  };
  const here = settingsFor(gateway.url);
  await says({ ...here, bucket: "no-such-bucket" }, {}, /bucket no-such-bucket at .* does not exist/);
  await says(here, { AWS_SECRET_ACCESS_KEY: "wrong-secret" }, /secret access key of this machine is wrong/);
  await says(here, { AWS_ACCESS_KEY_ID: "AKNOBODY" }, /does not know the access key/);
  await says({ ...here, endpoint: "http://127.0.0.1:1" }, {}, /can't be reached \(ECONNREFUSED\)/);
});

test("a store that is down is told as such, and used again when it is back", { skip }, async () => {
  await store.put("inputs/acct_9/large", largeBytes());
  await gateway.kill();
  await assert.rejects(store.put("inputs/acct_9/x", bytesOf("x")), {
    name: "StoreFailed",
    code: "store.ECONNREFUSED",
  });
  await gateway.start();
  await store.put("inputs/acct_9/x", bytesOf("x"));
});

test(
  "a connection that falls silent in the middle is given up, and the reader goes on where it was; one that stays silent is an error",
  { skip },
  async () => {
    const proxy = await openFrozenProxy(moto.url.replace("//", "//any@"));
    try {
      const endpoint = `http://127.0.0.1:${new URL(proxy.connectionString).port}`;
      const impatient = openS3Store(settingsFor(endpoint), {
        connectMs: 5_000,
        silentMs: 1_000,
        answerMs: 30_000,
      });
      const { sha256 } = await impatient.put("inputs/acct_9/large", largeBytes());
      const hash = createHash("sha256");
      let chunks = 0;
      for await (const chunk of impatient.open("inputs/acct_9/large")) {
        if (chunks++ === 3) {
          proxy.swallow();
          setTimeout(() => proxy.heal(), 500);
        }
        hash.update(chunk);
      }
      assert.deepEqual(hash.digest(), sha256);
      proxy.swallow();
      await assert.rejects(impatient.put("inputs/acct_9/x", bytesOf("x")), {
        name: "StoreFailed",
        message: /does not answer in time/,
      });
      await assert.rejects(textOf(impatient.open("inputs/acct_9/large")), { name: "StoreFailed" });
    } finally {
      await proxy.close();
    }
  },
);
