import assert from "node:assert/strict";
import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";

const projectFolder = resolve(import.meta.dirname, "../..");

test("the folder's lock lets one process in at a time, also while others are killed in it", async (t) => {
  const dataDir = mkdtempSync(join(tmpdir(), "latchkey-lock-"));
  t.after(() => rmSync(dataDir, { recursive: true, force: true }));
  // Each claims `inside` alone; one that finds a live process's claim there has met it in the lock.
  const script = `
    import { readFileSync, writeFileSync, rmSync } from "node:fs";
    import { openDataFolder } from "#db/embedded/data-folder.ts";
    import { withFolderLock } from "#db/embedded/folder-lock.ts";
    import { isRunning } from "#lib/process-mark.ts";
    const inside = process.env.DATA + "/inside";
    const until = performance.now() + 2500;
    let turns = 0;
    while (performance.now() < until) {
      await withFolderLock(openDataFolder(process.env.DATA), async () => {
        let other = null;
        try { other = Number(readFileSync(inside, "utf8")); } catch {}
        if (other !== null && isRunning(other)) console.log("met " + other);
        writeFileSync(inside, String(process.pid));
        await new Promise((done) => setTimeout(done, Math.random() * 4));
        rmSync(inside, { force: true });
        turns += 1;
      });
    }
    console.log("turns " + turns);
  `;
  const contend = (): { child: ChildProcess; output: Promise<string> } => {
    const child = spawn(process.execPath, ["--input-type=module", "--eval", script], {
      cwd: projectFolder,
      env: { ...process.env, DATA: dataDir },
      stdio: ["ignore", "pipe", "inherit"],
    });
    t.after(() => child.kill("SIGKILL"));
    let text = "";
    child.stdout.on("data", (chunk) => (text += String(chunk)));
    return { child, output: once(child, "close").then(() => text) };
  };
  const all = Array.from({ length: 6 }, contend);
  for (const { child } of all.slice(0, 3)) {
    await sleep(600);
    child.kill("SIGKILL");
  }
  const outputs = await Promise.all(all.map(({ output }) => output));
  assert.equal(outputs.join("").match(/met/g), null);
  for (const output of outputs.slice(3)) assert.match(output, /^turns [1-9]/);
});
