// The S3 store against moto, which does ranges, parts and unfinished uploads as AWS does, and checks no signature.
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { createServer, request as httpRequest } from "node:http";
import type { AddressInfo } from "node:net";
import { after, before, test } from "node:test";
import { CreateBucketCommand, CreateMultipartUploadCommand, UploadPartCommand } from "@aws-sdk/client-s3";
import { openS3Store } from "#blobs/s3-store.ts";
import { whyNoDebian } from "../debian-packages.ts";
import { openFrozenProxy } from "../flow/frozen-proxy.ts";
import { startMoto, type Moto } from "../vault/moto.ts";
import { BUCKET, clientOf, FETCH, settingsFor } from "./s3-stage.ts";
import { bytesOf, largeBytes, testStore, textOf } from "./store-suite.ts";

const skip = whyNoDebian() ?? false;
let moto: Moto;

before(async () => {
  if (skip !== false) return;
  moto = await startMoto();
  Object.assign(process.env, { AWS_ACCESS_KEY_ID: "AKTEST", AWS_SECRET_ACCESS_KEY: "secret-of-the-tests" });
  await clientOf(moto.url).send(new CreateBucketCommand({ Bucket: BUCKET }));
}, FETCH);

after(async () => await moto?.stop());

testStore("moto", () => openS3Store(settingsFor(moto.url)), { skip });

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
    assert.deepEqual(await Array.fromAsync(other.listUnfinished(past, () => true)), []);
    assert.equal(await other.removeUnfinished(past, () => true), 0);
    await other.removeAll("steps/acct_1/run_1/");
    assert.deepEqual((await Array.fromAsync(other.listUnfinished(future, () => true))).toSorted(), [
      "inputs/acct_1/b",
      "steps/acct_1/run_10/a",
    ]);
    assert.equal(await other.removeUnfinished(future, () => true), 2);
    assert.deepEqual(await Array.fromAsync(other.listUnfinished(future, () => true)), []);
  },
);

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

test("names are removed by the list; one by one at a store that takes no lists", { skip }, async () => {
  const lists: string[] = [];
  let takesLists = true;
  // What moto is asked goes through here.
  const server = createServer((request, response) => {
    if (request.method === "POST" && /[?&]delete\b/.test(request.url ?? "")) {
      lists.push(request.url ?? "");
      if (!takesLists) return void response.writeHead(501).end("<Error><Code>NotImplemented</Code></Error>");
    }
    const { method, headers, url } = request;
    const passed = httpRequest(new URL(url ?? "/", moto.url), { method, headers }, (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.pipe(response);
    });
    request.pipe(passed);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const endpoint = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  try {
    for (const takes of [true, false]) {
      takesLists = takes;
      lists.length = 0;
      const store = openS3Store(settingsFor(endpoint));
      const keys = Array.from({ length: 20 }, (_, index) => `results/acct_9/run_1/${index}`);
      for (const key of keys) await store.put(key, bytesOf("x"));
      await store.remove([...keys.slice(0, 10), "results/acct_9/run_1/none"]);
      await store.remove(keys.slice(10));
      assert.deepEqual(await Array.fromAsync(store.list("results/acct_9/run_1/", 100)), []);
      assert.equal(lists.length, takes ? 2 : 1, "a refusal is remembered");
    }
  } finally {
    server.closeAllConnections();
    server.close();
  }
});
