import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { promisify } from "node:util";
import { brotliDecompressSync } from "node:zlib";
import { openApiDocument } from "../../scripts/generate/openapi-document.ts";
import { OPERATIONS } from "../../scripts/generate/public-api/operations.ts";
import { sdkSamples } from "../../scripts/generate/sdk-samples.ts";
import { must } from "#lib/assert.ts";
import { connect, openCaller, type Caller } from "../caller.ts";
import { needsCurl } from "../curl.ts";
import { install } from "../service.ts";
import { BLUEPRINT, DOCUMENTS, STRATEGY } from "./documents.ts";

const run = promisify(execFile);
const ORIGIN = "https://app.example.com";
const TRIGGER = { purchase_order: "PO-7", period: { from: "2026-11-01" } };

let installation: Awaited<ReturnType<typeof install>>;
let url: string;
let caller: Caller;
let folder: string;
let shell: Readonly<Record<string, string>>;

before(async () => {
  folder = mkdtempSync(join(tmpdir(), "latchkey-curl-"));
  writeFileSync(join(folder, "order.csv"), "sku,amount\nA-1,3\n");
  installation = await install();
  await installation.apply(...DOCUMENTS);
  ({ url } = await installation.serve());
  const key = await installation.createKey("acme");
  caller = openCaller(url, key);
  const credential = await connect(caller, STRATEGY, { note: "n" });
  const { body: session } = await caller.post("/credential-sessions", { strategy_id: STRATEGY });
  const { body: embedded } = await caller.post("/embedded-credential-sessions", { origin: ORIGIN });
  const { body: made } = await caller.post(`/blueprints/${BLUEPRINT}/trigger`, {
    ...TRIGGER,
    credential_id: credential,
  });
  await caller.waitForRun(made.id);
  const { body: results } = await caller.get(`/blueprint-runs/${made.id}/results`);
  shell = {
    PATH: must(process.env["PATH"], "PATH"),
    PUBLIC_URL: url,
    BASE_URL: `${url}/api/v1`,
    API_KEY: key,
    STRATEGY_ID: STRATEGY,
    SESSION_ID: session.id,
    ORIGIN,
    EMBEDDED_SESSION_ID: embedded.id,
    CREDENTIAL_ID: credential,
    BLUEPRINT_KEY: BLUEPRINT,
    RUN_ID: made.id,
    DOWNLOAD_URL: results.results.lines,
  };
});

after(async () => {
  await installation?.[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true, force: true });
});

test("GET /openapi.json is the document with this service's address; unchanged, it is not sent again", async () => {
  const response = await fetch(`${url}/openapi.json`);
  assert.equal(response.status, 200);
  assert.equal(response.headers.get("content-type"), "application/json; charset=utf-8");
  assert.equal(response.headers.get("cache-control"), "public, max-age=300");
  assert.deepEqual(await response.json(), openApiDocument(url));
  const etag = must(response.headers.get("etag"), "ETag");
  for (const known of [etag, `"other", W/${etag}`, "*"]) {
    const again = await fetch(`${url}/openapi.json`, { headers: { "if-none-match": known } });
    assert.equal(again.status, 304, known);
    assert.equal(await again.text(), "");
  }
  assert.equal((await fetch(`${url}/openapi.json`, { headers: { "if-none-match": '"other"' } })).status, 200);
  const head = await fetch(`${url}/openapi.json`, { method: "HEAD" });
  assert.equal(head.status, 200);
  assert.equal(head.headers.get("etag"), etag);
});

test("GET /docs has every operation, its examples and failures; no inline script, nothing from elsewhere, no dead link", async () => {
  const response = await fetch(`${url}/docs`);
  assert.equal(response.status, 200);
  const policy = must(response.headers.get("content-security-policy"), "the policy");
  assert.match(policy, /^default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self';/);
  const page = await response.text();
  assert.match(page, /<link rel="icon" href="favicon\.ico"/);
  for (const operation of OPERATIONS) {
    assert.ok(page.includes(`id="${operation.id}"`), operation.id);
    const sources = [...Object.values(operation.curl), ...sdkSamples(operation).map(({ source }) => source)];
    for (const source of sources) assert.ok(page.includes(escaped(source)), source);
  }
  assert.ok(page.includes(`export BASE_URL=${url}/api/v1`));
  assert.deepEqual(page.match(/<script[^<]*<\/script>/gi), [
    '<script type="module" src="docs/script.js"></script>',
  ]);
  assert.doesNotMatch(page, /<style|style="|\son\w+="/i);
  for (const [, target] of page.matchAll(/(?:href|src)="([^"]*)"/g)) {
    if (target?.startsWith("#")) assert.ok(page.includes(`id="${target.slice(1)}"`), target);
    else assert.equal((await fetch(new URL(must(target, "a target"), `${url}/docs`))).status, 200, target);
  }
});

/** The side in pixels, and the first bytes, of every picture of an icon. */
function picturesOf(icon: Buffer): readonly (readonly [number, string])[] {
  assert.deepEqual([icon.readUInt16LE(0), icon.readUInt16LE(2)], [0, 1], "an icon");
  return Array.from({ length: icon.readUInt16LE(4) }, (_, number) => {
    const entry = icon.subarray(6 + 16 * number);
    const [size, at] = [entry.readUInt32LE(8), entry.readUInt32LE(12)];
    assert.ok(at + size <= icon.length, "a whole picture");
    return [entry.readUInt8(0), icon.toString("latin1", at, at + 8)];
  });
}

test("GET /favicon.ico is an icon of the usual sizes, which browsers keep for a week", async () => {
  const response = await fetch(`${url}/favicon.ico`);
  assert.equal(response.status, 200);
  assert.equal(response.headers.get("content-type"), "image/x-icon");
  assert.equal(response.headers.get("cache-control"), "public, max-age=604800");
  assert.equal(response.headers.get("x-content-type-options"), "nosniff");
  const icon = Buffer.from(await response.arrayBuffer());
  const png = "\x89PNG\r\n\x1a\n";
  assert.deepEqual(picturesOf(icon), [
    [16, png],
    [32, png],
    [48, png],
  ]);
  const head = await fetch(`${url}/favicon.ico`, { method: "HEAD" });
  assert.deepEqual([head.status, head.headers.get("content-length")], [200, String(icon.length)]);
});

const escaped = (text: string): string =>
  text
    .replaceAll("&", "&amp;")
    .replaceAll('"', "&quot;")
    .replaceAll("'", "&#39;")
    .replaceAll("<", "&lt;")
    .replaceAll(">", "&gt;");

/** Runs a command of the documentation as it stands. Gives the status of its answer. */
async function statusOf(command: string, more: Readonly<Record<string, string>> = {}): Promise<number> {
  const noted = command.replaceAll("curl -sS", `curl -sS --max-time 20 -w '\\n%{http_code}'`);
  // The stream of the account's events ends only when it is cut.
  const cut = command.includes("$BASE_URL/events")
    ? `${noted.replace("--max-time 20", "--max-time 3")} || true`
    : noted;
  const { stdout } = await run("sh", ["-ec", cut], { cwd: folder, env: { ...shell, ...more } });
  return Number(stdout.trimEnd().split("\n").at(-1));
}

/** Does something with variables of the shell of its own: what a command deletes or cancels is nobody else's. */
async function withOwn(
  operation: string,
  work: (own: Readonly<Record<string, string>>) => Promise<void>,
): Promise<void> {
  if (operation.endsWith("TestClock"))
    return await work({ API_KEY: await installation.createKey("acme", { isTest: true }) });
  if (operation === "deleteCredential")
    return await work({ CREDENTIAL_ID: await connect(caller, STRATEGY, { note: "n" }) });
  if (operation !== "cancelRun") return await work({});
  await installation.database.db.transaction(async (tx) => {
    // While the account's row is locked nothing is admitted: the run waits until it is cancelled.
    await tx.query("select 1 from account for no key update");
    const { body } = await caller.post(`/blueprints/${BLUEPRINT}/trigger`, {
      ...TRIGGER,
      credential_id: shell["CREDENTIAL_ID"],
    });
    await work({ RUN_ID: body.id });
  });
}

test("every command of the reference works as it stands", needsCurl, async () => {
  for (const operation of OPERATIONS) {
    for (const [label, source] of Object.entries(operation.curl)) {
      await withOwn(operation.id, async (own) => {
        const status = await statusOf(source, own);
        assert.equal(status, operation.answers[0]?.status, `${operation.id}, ${label}`);
      });
    }
  }
});

test("every command of docs/api.md answers as the page says", needsCurl, async () => {
  const text = readFileSync(new URL("../../docs/api.md", import.meta.url), "utf8");
  const commands = [...text.matchAll(/^```sh\n# answers (\d{3})\n(.*?)^```$/gms)];
  assert.equal(
    commands.length,
    [...text.matchAll(/^```sh$/gm)].length,
    "every sh block says what it answers",
  );
  assert.ok(commands.length >= 6);
  for (const [, status, command] of commands) {
    assert.equal(await statusOf(must(command, "a command")), Number(status), command);
  }
  const download = JSON.parse(
    brotliDecompressSync(readFileSync(join(folder, "invoices.json.br"))).toString("utf8"),
  );
  assert.deepEqual(Object.keys(download), ["totalRecords", "records"]);
});
