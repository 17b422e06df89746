import assert from "node:assert/strict";
import { existsSync, globSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { brotliDecompressSync } from "node:zlib";
import { moveClock } from "../clock.ts";
import { openCaller, type Caller } from "../caller.ts";
import { install } from "../service.ts";
import { runHousekeeping } from "./run-history.ts";
import { startTarget, type Target, type TargetRequest } from "./target.ts";

const BLUEPRINT = `blueprint: filler
account: acme
retention: 1h
hosts: [TARGET]
nodes:
  - { id: pages, type: input, refKey: pages, accepts: text }
  - id: read
    type: http
    request: { method: GET, url: "TARGET/items", query: { pages: "{{ $inputs.pages }}" } }
    paginate: { cursor: next, param: cursor }
    records: items
  - { id: out, type: output, refKey: items, from: read }`;
const PAGE_BYTES = 990_000;
const ITEM_BYTES = 10_000;

let target: Target;
let installation: Awaited<ReturnType<typeof install>>;
let caller: Caller;

before(async () => {
  target = await startTarget(items);
  installation = await install();
  await installation.apply("account: acme", BLUEPRINT.replaceAll("TARGET", target.url));
  caller = openCaller((await installation.serve()).url, await installation.createKey("acme"));
});

after(async () => {
  await installation?.[Symbol.asyncDispose]();
  await target?.close();
});

/** `pages` pages of 99 items, 10,000 bytes each; 0 pages: three small items. */
function items({ query }: TargetRequest) {
  const textBytes = /^(\d+) bytes$/.exec(query.get("pages") ?? "")?.[1];
  if (textBytes !== undefined)
    return { body: { items: [{ n: 0, text: "x".repeat(Number(textBytes)) }], next: null } };
  const pages = Number(query.get("pages"));
  const page = Number(query.get("cursor") ?? "0");
  if (pages === 0) return { body: { items: [{ n: 1 }, { n: 2 }, { n: 3 }], next: null } };
  const list = Array.from({ length: PAGE_BYTES / ITEM_BYTES }, (_, index) => ({
    n: page * 99 + index,
    text: "x".repeat(ITEM_BYTES),
  }));
  return { body: { items: list, next: page + 1 < pages ? String(page + 1) : null } };
}

async function runOf(pages: number | string): Promise<string> {
  const { body } = await caller.post("/blueprints/filler/trigger", { pages: String(pages) });
  const done = await caller.waitForRun(body.id);
  assert.equal(done.body.status, "completed");
  return body.id;
}

async function linkOf(runId: string): Promise<string> {
  const { body } = await caller.get(`/blueprint-runs/${runId}/results`);
  assert.equal(body.dataDeliveryMethod, "presigned_url");
  return body.results.items;
}

/** Small results are kept in their row, large ones as objects: nobody sees the difference. */
const SIZES = { "in its row": 0, "an object": 1 };

for (const [kept, pages] of Object.entries(SIZES))
  test(`a download (${kept}) is Brotli without Content-Encoding, an attachment, and gives ranges`, async () => {
    const runId = await runOf(pages);
    const url = await linkOf(runId);
    const whole = await fetch(url);
    assert.equal(whole.status, 200);
    assert.equal(whole.headers.get("content-encoding"), null);
    assert.match(whole.headers.get("content-disposition") ?? "", /^attachment; filename="items\.json\.br"/);
    assert.equal(whole.headers.get("content-type"), "application/octet-stream");
    assert.equal(whole.headers.get("accept-ranges"), "bytes");
    assert.match(whole.headers.get("cache-control") ?? "", /no-store/);
    const bytes = Buffer.from(await whole.arrayBuffer());
    assert.equal(whole.headers.get("content-length"), String(bytes.length));
    const { body: direct } = await caller.get(`/blueprint-runs/${runId}/results?deliveryMethod=direct`);
    assert.equal(direct.results.items.totalRecords, pages === 0 ? 3 : 99);
    assert.deepEqual(direct.results.items.records[0].data.n, pages === 0 ? 1 : 0);
    assert.deepEqual(JSON.parse(brotliDecompressSync(bytes).toString("utf8")), direct.results.items);

    const size = bytes.length;
    const ranges: [string, number, number][] = [
      ["bytes=0-9", 0, 9],
      ["bytes=5-", 5, size - 1],
      ["bytes=-7", size - 7, size - 1],
      [`bytes=3-${size * 2}`, 3, size - 1],
    ];
    for (const [range, start, end] of ranges) {
      const part = await fetch(url, { headers: { range } });
      assert.equal(part.status, 206, range);
      assert.equal(part.headers.get("content-range"), `bytes ${start}-${end}/${size}`);
      assert.deepEqual(Buffer.from(await part.arrayBuffer()), bytes.subarray(start, end + 1));
    }
    const beyond = await fetch(url, { headers: { range: `bytes=${size}-` } });
    assert.equal(beyond.status, 416);
    assert.equal(beyond.headers.get("content-range"), `bytes */${size}`);
    const head = await fetch(url, { method: "HEAD" });
    assert.ok(
      head.status === 404 || head.headers.get("content-length") === String(size),
      `HEAD ${head.status}`,
    );
  });

test("a link with any part changed is refused", async () => {
  const [runId, otherRunId] = [await runOf(0), await runOf(0)];
  const link = await linkOf(runId);
  const other = new URL(await linkOf(otherRunId));
  const changed = (edit: (url: URL) => void): string => {
    const url = new URL(link);
    edit(url);
    assert.notEqual(url.href, link);
    return url.href;
  };
  const parameter = (name: string, value: (old: string) => string) =>
    changed((url) => url.searchParams.set(name, value(url.searchParams.get(name) ?? "")));
  const [, , accountId = ""] = new URL(link).pathname.split("/");
  const tampered: Record<string, string> = {
    "the account": changed((url) => (url.pathname = url.pathname.replace(accountId, `${accountId}x`))),
    "the run": changed((url) => (url.pathname = url.pathname.replace(runId, otherRunId))),
    "the key": changed((url) => (url.pathname = `${url.pathname}x`)),
    "a later expiry": parameter("expires", (old) => String(Number(old) + 3_600_000)),
    "an earlier expiry": parameter("expires", (old) => String(Number(old) - 1)),
    "an expiry of another spelling": parameter("expires", (old) => `0${old}`),
    "no expiry": changed((url) => url.searchParams.delete("expires")),
    "no signature": changed((url) => url.searchParams.delete("signature")),
    "an empty signature": parameter("signature", () => ""),
    "another run's signature": parameter("signature", () => other.searchParams.get("signature") ?? ""),
    "a longer signature": parameter("signature", (old) => `${old}A`),
    "a cut signature": parameter("signature", (old) => old.slice(0, -1)),
    "another key id": parameter("signature", (old) => `${old.startsWith("0") ? "1" : "0"}${old.slice(1)}`),
    "two signatures": changed((url) => url.searchParams.append("signature", "x")),
  };
  // The last character of base64url holds unused bits: another one may decode to the same bytes, and is refused all the same.
  for (const character of "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_") {
    if (!link.endsWith(character))
      tampered[`the signature ending in ${character}`] = parameter(
        "signature",
        (old) => old.slice(0, -1) + character,
      );
  }
  for (const [what, url] of Object.entries(tampered)) {
    const response = await fetch(url);
    assert.equal(response.status, 403, what);
    assert.equal(((await response.json()) as any).error.type, "authorization_error", what);
  }
  assert.equal((await fetch(link)).status, 200);
});

test("a link works for two hours and not longer, by the database's clock", async () => {
  const { db } = installation.database;
  const url = await linkOf(await runOf(0));
  await moveClock(db, "1 hour 59 minutes");
  assert.equal((await fetch(url)).status, 200);
  await moveClock(db, "2 hours");
  const late = await fetch(url);
  assert.equal(late.status, 403);
  assert.equal(((await late.json()) as any).error.type, "authorization_error");
  await moveClock(db, "0");
});

test("direct falls back to presigned_url from 5 MB on, and not below", async () => {
  const large = await runOf(6);
  const { body } = await caller.get(`/blueprint-runs/${large}/results?deliveryMethod=direct`);
  assert.equal(body.dataDeliveryMethod, "presigned_url");
  const downloaded = brotliDecompressSync(Buffer.from(await (await fetch(body.results.items)).arrayBuffer()));
  assert.ok(downloaded.length > 5_900_000);
  const { totalRecords, records } = JSON.parse(downloaded.toString("utf8"));
  assert.equal(totalRecords, 594);
  assert.deepEqual(
    records.map((record: any) => record.data.n),
    Array.from({ length: 594 }, (_, index) => index),
  );

  const small = await runOf(4);
  const { body: direct } = await caller.get(`/blueprint-runs/${small}/results?deliveryMethod=direct`);
  assert.equal(direct.dataDeliveryMethod, "direct");
  assert.equal(direct.results.items.records.length, 396);
});

test("the limit is the byte: direct at an estimated 4,900,000 and 4,999,999, presigned_url at 5,000,000", async () => {
  const { db } = installation.database;
  const estimateOf = async (runId: string): Promise<number> => {
    const rows = await db.query<{ bytes: number }>(`select response_bytes as bytes from run where id = $1`, [
      runId,
    ]);
    return Number(rows[0]?.bytes);
  };
  const first = await runOf("4800000 bytes");
  const around = (await estimateOf(first)) - 4_800_000;
  for (const [estimate, method] of [
    [4_900_000, "direct"],
    [4_999_999, "direct"],
    [5_000_000, "presigned_url"],
  ] as const) {
    const runId = await runOf(`${estimate - around} bytes`);
    assert.equal(await estimateOf(runId), estimate);
    const answer = await caller.get(`/blueprint-runs/${runId}/results?deliveryMethod=direct`);
    assert.equal(answer.status, 200);
    assert.equal(answer.body.dataDeliveryMethod, method, String(estimate));
    if (method === "direct") {
      assert.equal(answer.body.results.items.records[0].data.text.length, estimate - around);
      // The estimate is not below what is sent, and near it.
      const sent = Buffer.byteLength(answer.text);
      assert.ok(sent <= estimate && sent > estimate - 1_000, `${sent} bytes for an estimate of ${estimate}`);
    }
  }
});

for (const [kept, pages] of Object.entries(SIZES))
  test(`after the retention the results (${kept}) are gone: 400 run_data_purged, the link 404, the objects removed`, async () => {
    const { db } = installation.database;
    const runId = await runOf(pages);
    const { body: run } = await caller.get(`/blueprint-runs/${runId}/status`);
    const url = await linkOf(runId);
    const objects = (): string[] => globSync(join(installation.dataFolder, "objects", "**", runId, "*"));
    assert.equal(objects().length, pages === 0 ? 0 : 2, "the step's and the result's object");

    await moveClock(db, "59 minutes");
    await runHousekeeping(db);
    assert.equal((await fetch(url)).status, 200, "still there within the retention");
    await moveClock(db, "61 minutes");
    await runHousekeeping(db);

    for (const query of ["", "?deliveryMethod=direct"]) {
      const purged = await caller.get(`/blueprint-runs/${runId}/results${query}`);
      assert.equal(purged.status, 400);
      assert.equal(purged.body.error.type, "validation_error");
      assert.deepEqual(
        purged.body.error.details.map((detail: any) => detail.code),
        ["run_data_purged"],
      );
    }
    // Its signature and its time are still good: the data is not there any more.
    assert.equal((await fetch(url)).status, 404);
    assert.ok(existsSync(join(installation.dataFolder, "objects")));
    assert.deepEqual(objects(), []);
    for (const table of ["run_input", "run_step", "run_result", "blob"]) {
      const rows = await db.query(`select 1 from ${table} where run_id = $1`, [runId]);
      assert.equal(rows.length, 0, table);
    }
    // docs/decisions/0029: the run itself stays.
    assert.deepEqual((await caller.get(`/blueprint-runs/${runId}/status`)).body, run);
    await moveClock(db, "0");
  });
