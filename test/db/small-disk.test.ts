// The small disks of tests are gone however the test's process ends: nobody else would unmount them.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { eventually } from "../eventually.ts";
import { testInAll } from "../tiers.ts";
import { whyNoSmallDisk } from "./full-disk.ts";

const MODULE = new URL("./full-disk.ts", import.meta.url).href;
const isMounted = (folder: string): boolean => readFileSync("/proc/mounts", "utf8").includes(` ${folder} `);

testInAll(
  "nothing: it is of the machine on which the tests run",
  "a small disk is unmounted when its process is interrupted or killed",
  { skip: whyNoSmallDisk },
  async () => {
    for (const signal of ["SIGINT", "SIGTERM", "SIGKILL"] as const) {
      const parent = mkdtempSync(join(tmpdir(), "latchkey-small-disk-"));
      const folder = join(parent, "disk");
      const program = `import { mountSmallDisk } from ${JSON.stringify(MODULE)};
        mountSmallDisk(${JSON.stringify(folder)}, 1); console.log("mounted"); setInterval(() => {}, 1_000);`;
      const child = spawn(process.execPath, ["--input-type=module", "--eval", program], {
        stdio: ["ignore", "pipe", "inherit"],
      });
      try {
        await once(child.stdout, "data");
        assert.ok(isMounted(folder));
        child.kill(signal);
        await once(child, "exit");
        await eventually("it is unmounted", async () => !isMounted(folder) || undefined);
      } finally {
        child.kill("SIGKILL");
        rmSync(parent, { recursive: true, force: true });
      }
    }
  },
);
