// A disk that is full makes runs wait and uploads answer 503, with the folder store as with S3. The disk is a real one, of 3 MB.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { mkdirSync, rmSync, statfsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { openTombstones } from "#actions/credentials/tombstones.ts";
import { diskFailure, StoreFailed } from "#blobs/store.ts";
import { readLog } from "#lib/append-log.ts";
import { renderInstruments } from "#lib/metrics.ts";
import { eventually } from "../eventually.ts";
import { openCaller, type Caller } from "../caller.ts";
import { install, type Installation, type RunningService } from "../service.ts";

/** Only root may mount a disk. */
const skip = process.getuid?.() === 0 ? false : "needs root, to mount a small disk";

let installation: Installation & AsyncDisposable;
let service: RunningService;
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
  service = await installation.serve();
  caller = openCaller(service.url, await installation.createKey("acme"));
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
  // docs/operate.md#a-full-disk: in readiness, which stays 200, in the metrics, and in the log.
  const ready = await fetch(`${service.url}/readyz`);
  assert.deepEqual([ready.status, await ready.json()], [200, { status: "ready", disk_full: ["objects"] }]);
  assert.match(renderInstruments(), /latchkey_disk_full_total\{place="objects"\} [1-9]/);
  const alarm = /"alarm":"disk_full","place":"objects"/;
  await eventually("the alarm", async () => alarm.test(installation.logs()) || undefined);
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

test(
  "a tombstone that finds no room for all of its line is refused, and the next one is whole",
  { skip },
  async () => {
    const file = join(disk, "tombstones.ndjson");
    const write = async (entry: string): Promise<void> =>
      await openTombstones(file).of("cred_x").write("acc_x", { id: entry, occurredAt: "now" });
    // The file's last page has some room: a write of the line begins well, and ends early.
    writeFileSync(file, `${"x".repeat(4_040)}\n`);
    assert.throws(() => writeFileSync(filler(), Buffer.alloc(4 * 1_048_576)), { code: "ENOSPC" });
    await assert.rejects(
      write("first"),
      (error) => error instanceof StoreFailed && error.code === "store.ENOSPC",
    );
    rmSync(filler());
    await write("second");
    const { lines } = await readLog(file);
    assert.deepEqual(
      lines.map(({ value }) => value["entry"]),
      ["second"],
    );
  },
);

test("only what a disk says is the disk's failure", () => {
  let error: unknown;
  try {
    writeFileSync("/dev/full", "x");
  } catch (thrown) {
    error = thrown;
  }
  assert.equal((error as { code?: string }).code, "ENOSPC");
  const failure = diskFailure("objects", "/data/objects", error);
  assert.ok(failure instanceof StoreFailed);
  assert.equal(failure.message, "the disk of /data/objects is full: free some space (ENOSPC)");
  const other = new Error("cut");
  assert.equal(diskFailure("objects", "/data/objects", other), other);
});
