// A disk that is full makes runs wait and uploads answer 503, with the folder store as with S3. The disk is a real one, of 3 MB.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { mkdirSync, rmSync, statfsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { diskFailure, StoreFailed } from "#blobs/store.ts";
import { eventually } from "../eventually.ts";
import { openCaller, type Caller } from "../caller.ts";
import { install, type Installation } from "../service.ts";

/** Only root may mount a disk. */
const skip = process.getuid?.() === 0 ? false : "needs root, to mount a small disk";

let installation: Installation & AsyncDisposable;
let caller: Caller;
let disk: string;

before(async () => {
  if (skip !== false) return;
  installation = await install();
  disk = join(installation.dataFolder, "objects");
  mkdirSync(disk, { recursive: true });
  execFileSync("mount", ["-t", "tmpfs", "-o", "size=3m", "tmpfs", disk]);
  await installation.apply(
    "account: acme",
    `blueprint: rows
account: acme
nodes:
  - { id: a, type: input, refKey: a }
  - { id: rows, type: parse, from: a, format: json }
  - { id: out, type: output, refKey: out, from: rows }`,
  );
  caller = openCaller((await installation.serve()).url, await installation.createKey("acme"));
});
after(async () => {
  if (disk !== undefined) execFileSync("umount", ["--lazy", disk]);
  await installation?.[Symbol.asyncDispose]();
});

const filler = (): string => join(disk, "filler");

function fill(): void {
  const { bavail, bsize } = statfsSync(disk);
  writeFileSync(filler(), Buffer.alloc(bavail * bsize - 8_192));
}

const large = JSON.stringify(
  Array.from({ length: 400 }, (_, n) => ({ n, text: randomBytes(600).toString("hex") })),
);

test("an upload is answered 503, and accepted when there is room again", { skip }, async () => {
  const upload = async () => {
    const form = new FormData();
    form.set("a", new Blob([large]), "rows.json");
    return await caller.post("/blueprints/rows/trigger", form);
  };
  fill();
  const refused = await upload();
  assert.equal(refused.status, 503, refused.text);
  assert.ok(refused.headers.has("retry-after"));
  assert.match(installation.logs(), /"code":"store\.ENOSPC"/);
  rmSync(filler());
  const accepted = await upload();
  assert.equal((await caller.waitForRun(accepted.body.id)).body.status, "completed");
});

test("a run whose result finds no room waits, and completes when there is some", { skip }, async () => {
  fill();
  const { body } = await caller.post("/blueprints/rows/trigger", { a: large });
  const waits = /"the object store failed; the run waits and will continue from its journal"/;
  await eventually("the run waits", async () => waits.test(installation.logs()) || undefined);
  const { body: run } = await caller.get(`/blueprint-runs/${body.id}`);
  assert.notEqual(run.status, "failed");
  rmSync(filler());
  assert.equal((await caller.waitForRun(body.id)).body.status, "completed");
});

test("only what a disk says is the disk's failure", () => {
  let error: unknown;
  try {
    writeFileSync("/dev/full", "x");
  } catch (thrown) {
    error = thrown;
  }
  assert.equal((error as { code?: string }).code, "ENOSPC");
  const failure = diskFailure("/data/objects", error);
  assert.ok(failure instanceof StoreFailed);
  assert.equal(failure.message, "the disk of /data/objects is full: free some space (ENOSPC)");
  const other = new Error("cut");
  assert.equal(diskFailure("/data/objects", other), other);
});
