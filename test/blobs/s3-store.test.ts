import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import {
  CreateBucketCommand,
  ListObjectsV2Command,
  PutObjectCommand,
  type S3Client,
} from "@aws-sdk/client-s3";
import type { S3Settings } from "#blobs/s3-failures.ts";
import { openS3Store } from "#blobs/s3-store.ts";
import type { BlobStore } from "#blobs/store.ts";
import { startGateway, whyNoGateway, type ObjectGateway } from "./radosgw.ts";
import { BUCKET, clientOf, FETCH, settingsFor } from "./s3-stage.ts";
import { bytesOf, largeBytes, testStore, textOf } from "./store-suite.ts";

const skip = whyNoGateway() ?? false;
if (skip !== false) console.log(`The S3 store is not tested: ${skip}.`);

let gateway: ObjectGateway;
let client: S3Client;
let store: BlobStore;

before(async () => {
  if (skip !== false) return;
  gateway = await startGateway();
  Object.assign(process.env, gateway.environment);
  client = clientOf(gateway.url);
  await client.send(new CreateBucketCommand({ Bucket: BUCKET }));
  store = openS3Store(settingsFor(gateway.url));
}, FETCH);

after(async () => {
  await gateway?.close();
});

// Measured of Debian's 18.2.7 and 20.2.4: with SQLite below it, it gives the first bytes for any range, and an object that was sent
// in parts as its last part again and again. Its signatures and refusals are right.
const skipParts = skip === false ? "Ceph without a cluster does not do this right" : skip;
testStore("Ceph", () => store, { skip, skipParts });

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
  await says(here, { AWS_SECRET_ACCESS_KEY: "wrong-secret" }, /this machine's secret access key is wrong/);
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
