/** Presigned downloads of results, over real HTTP from a real run. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { brotliDecompressSync } from "node:zlib";
import { listen, setUpHosted, type Hosted } from "./hosted-setup.ts";

const TWO_HOURS_MS = 7_200_000;
const RECORDS = 2_000;

let target: Awaited<ReturnType<typeof listen>>;
let hosted: Hosted;
/** The results of one run, both ways. */
let direct: { readonly totalRecords: number; readonly records: readonly unknown[] };
let url: URL;
/** Just before and just after the address was asked for. */
let askedMs: readonly [number, number];
let whole: Buffer;

before(async () => {
  const items = Array.from({ length: RECORDS }, (_, index) => ({ index, name: `Zoë ${index}` }));
  target = await listen((_request, response) =>
    response.setHeader("content-type", "application/json").end(JSON.stringify({ items })),
  );
  const blueprint = {
    blueprint: "list",
    account: "acme",
    name: "List",
    hosts: [target.origin],
    nodes: [
      { id: "asked", type: "http", request: { method: "GET", url: `${target.origin}/` }, records: "items" },
      { id: "out", type: "output", refKey: "list", from: "asked" },
    ],
  };
  hosted = await setUpHosted(JSON.stringify(blueprint));
  const run = await hosted.acme.post("/blueprints/list/trigger", {});
  assert.equal((await hosted.acme.waitForRun(run.body.id)).body.status, "completed");
  const results = async (method: string) =>
    (await hosted.acme.get(`/blueprint-runs/${run.body.id}/results?deliveryMethod=${method}`)).body.results
      .list;
  direct = await results("direct");
  const before = Date.now();
  url = new URL(await results("presigned_url"));
  askedMs = [before, Date.now()];
  whole = Buffer.from(await (await fetch(url)).arrayBuffer());
});
after(async () => {
  target.close();
  await hosted[Symbol.asyncDispose]();
});

const get = async (address: URL | string, headers: Record<string, string> = {}, method = "GET") =>
  await fetch(address, { method, headers });

async function assertRefused(response: Response): Promise<void> {
  assert.equal(response.status, 403);
  const { error } = (await response.json()) as { error: { type: string } };
  assert.equal(error.type, "authorization_error");
}

test("the body is the Brotli stream of what direct delivery shows, and no client decompresses it twice", async () => {
  assert.equal(direct.totalRecords, RECORDS);
  assert.deepEqual(JSON.parse(brotliDecompressSync(whole).toString("utf8")), direct);
  const { status, headers } = await get(url, { "accept-encoding": "br, gzip" });
  assert.equal(status, 200);
  assert.equal(headers.get("content-encoding"), null);
  assert.equal(headers.get("content-type"), "application/octet-stream");
  assert.match(String(headers.get("content-disposition")), /^attachment; filename="list\.json\.br"/);
  assert.equal(headers.get("content-length"), String(whole.length));
  assert.equal(headers.get("accept-ranges"), "bytes");
  assert.match(String(headers.get("cache-control")), /no-store/);
  assert.equal(headers.get("x-content-type-options"), "nosniff");
});

test("HEAD tells the size and sends nothing", async () => {
  const response = await get(url, {}, "HEAD");
  assert.equal(response.status, 200);
  assert.equal(response.headers.get("content-length"), String(whole.length));
  assert.equal((await response.arrayBuffer()).byteLength, 0);
});

test("a range gives its bytes", async () => {
  const last = whole.length - 1;
  const ranges = [
    { header: "bytes=0-0", start: 0, end: 0 },
    { header: "bytes=10-99", start: 10, end: 99 },
    { header: `bytes=${last}-`, start: last, end: last },
    { header: "bytes=-7", start: whole.length - 7, end: last },
    { header: "bytes=5-99999999", start: 5, end: last },
    { header: "bytes=-99999999", start: 0, end: last },
  ];
  for (const { header, start, end } of ranges) {
    const response = await get(url, { range: header });
    assert.equal(response.status, 206, header);
    assert.equal(response.headers.get("content-range"), `bytes ${start}-${end}/${whole.length}`);
    assert.ok(Buffer.from(await response.arrayBuffer()).equals(whole.subarray(start, end + 1)), header);
  }
});

test("a range outside is 416, and what is no single range of bytes gives the whole", async () => {
  for (const header of [`bytes=${whole.length}-`, "bytes=-0"]) {
    const response = await get(url, { range: header });
    assert.equal(response.status, 416, header);
    assert.equal(response.headers.get("content-range"), `bytes */${whole.length}`);
    assert.equal((await response.arrayBuffer()).byteLength, 0);
  }
  for (const header of ["bytes=5-2", "bytes=0-1,4-5", "items=0-1", "bytes=-", "bytes=a-b"]) {
    const response = await get(url, { range: header });
    assert.equal(response.status, 200, header);
    assert.equal((await response.arrayBuffer()).byteLength, whole.length);
  }
});

test("a URL that was changed anywhere, or is unsigned, is refused", async () => {
  const changes: ((copy: URL) => unknown)[] = [
    (copy) => copy.searchParams.delete("signature"),
    (copy) => copy.searchParams.delete("expires"),
    (copy) => copy.searchParams.set("expires", String(Number(copy.searchParams.get("expires")) + 1)),
    (copy) => copy.searchParams.append("expires", "99999999999999"),
    (copy) => copy.searchParams.append("signature", "x"),
    (copy) => copy.searchParams.set("signature", `${copy.searchParams.get("signature")}=`),
    (copy) => (copy.pathname = copy.pathname.replace(/list$/, "other")),
    (copy) => (copy.pathname = copy.pathname.replace(/run_./, "run_z")),
    (copy) => (copy.pathname = copy.pathname.replace(/^\/downloads\/[^/]+/, "/downloads/acme")),
  ];
  for (const change of changes) {
    const copy = new URL(url);
    change(copy);
    assert.notEqual(copy.href, url.href);
    await assertRefused(await get(copy));
  }
});

test("it works until two hours have passed, by the database's clock, and not one millisecond longer", async () => {
  const expiresMs = Number(url.searchParams.get("expires"));
  const [first, last] = askedMs.map((ms) => ms + TWO_HOURS_MS);
  assert.ok(expiresMs >= Number(first) && expiresMs <= Number(last), `${first} ${expiresMs} ${last}`);
  const at = async (ms: number): Promise<void> =>
    await hosted.setClock(`timestamptz '${new Date(ms).toISOString()}'`);
  try {
    await at(expiresMs - 1);
    assert.equal((await get(url, { range: "bytes=0-0" })).status, 206);
    await at(expiresMs);
    await assertRefused(await get(url));
  } finally {
    await hosted.setClock();
  }
});
