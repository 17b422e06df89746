/**
 * `node scripts/run.mjs [--tests] FILE [ARGUMENTS…]`: sets the project up when needed, then runs a file on the project's
 * Node. What the npm scripts call: npm skips `pre…` scripts where `ignore-scripts` is set, and this works there too.
 */
import { spawn, spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { modules, root } from "./setup/project.mjs";

const [first, ...others] = process.argv.slice(2);
const forTests = first === "--tests";
const [file, ...rest] = forTests ? others : [first, ...others];

const setup = fileURLToPath(new URL("./setup.mjs", import.meta.url));
const prepared = spawnSync(process.execPath, [setup, ...(forTests ? ["--tests"] : [])], { stdio: "inherit" });
if (prepared.status !== 0) process.exit(prepared.status ?? 1);

const own = join(modules, ".bin", "node");
const node = existsSync(own) ? own : process.execPath;
const child = spawn(node, ["--disable-warning=ExperimentalWarning", join(root, file), ...rest], {
  stdio: "inherit",
});
// A terminal sends Ctrl-C to both; `kill` reaches only this process. The child decides when it is done.
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.on(signal, () => child.kill(signal));
child.on("exit", (code, signal) => {
  if (signal !== null) {
    process.removeAllListeners(signal);
    process.kill(process.pid, signal);
  }
  process.exitCode = code ?? 1;
});
