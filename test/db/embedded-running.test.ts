import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { awaitRunning } from "#db/embedded/server.ts";

const folder = mkdtempSync(join(tmpdir(), "latchkey-running-"));
after(() => rmSync(folder, { recursive: true, force: true }));

test("a server that says it is ready and refuses for a moment is one that stops, and not one that has lost its socket", async () => {
  // A process in the data folder, as a server is, that nobody can connect to.
  const server = spawn(process.execPath, ["--eval", "setInterval(() => {}, 1_000)"], { cwd: folder });
  await once(server, "spawn");
  const lines = [server.pid, folder, 0, 5432, join(folder, "no-socket"), "", "", "ready"];
  writeFileSync(join(folder, "postmaster.pid"), lines.join("\n"));
  const ended = once(server, "exit");
  const found = awaitRunning({ path: folder, user: "latchkey", password: "none" });
  await sleep(500);
  server.kill();
  await ended;
  assert.equal(await found, "ended");
});
