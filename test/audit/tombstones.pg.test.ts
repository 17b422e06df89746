// The file of deleted credentials, when two requests delete one and the first of them fails.
import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { openTombstones, readTombstones } from "#actions/credentials/tombstones.ts";
import { newId } from "#lib/new-id.ts";
import { installIdle, plantCredentials } from "../idempotency/fixture.ts";
import type { Installation } from "../service.ts";

const folder = mkdtempSync(join(tmpdir(), "latchkey-tombstones-"));
let installation: Installation & AsyncDisposable;

before(async () => {
  installation = await installIdle();
});
after(async () => {
  await installation?.[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true, force: true });
});

const occurredAt = "2026-11-22T07:08:09.123Z";

test("a request that fails takes its own line back, and not that of the one that succeeded", async () => {
  const file = join(folder, "two.ndjson");
  const { db } = installation.database;
  // As after a rollback: it is there still.
  const [id = ""] = await plantCredentials(installation, 1);
  const tombstones = openTombstones(file);
  const [failing, succeeding] = [tombstones.of(id), tombstones.of(id)];
  await failing.write("acct_1", { id: "aud_1", occurredAt });
  await succeeding.write("acct_1", { id: "aud_2", occurredAt });
  await failing.withdraw(db);
  assert.deepEqual(await readTombstones([file]), { credentialIds: [id], unreadable: 0 });
  await succeeding.withdraw(db);
  assert.deepEqual(await readTombstones([file]), { credentialIds: [], unreadable: 0 });
  assert.equal(readFileSync(file, "utf8").trim().split("\n").length, 4);
});

test("a line of an earlier program, which names no request, takes back what came before it", async () => {
  const file = join(folder, "earlier.ndjson");
  const id = newId("cred_");
  const lines = [
    { v: 1, deleted: id, entry: "aud_1" },
    { v: 1, undone: id },
  ];
  writeFileSync(file, lines.map((line) => `${JSON.stringify(line)}\n`).join(""));
  assert.deepEqual((await readTombstones([file])).credentialIds, []);
});
