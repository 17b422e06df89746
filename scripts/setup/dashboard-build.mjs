/**
 * The dashboard is the one part that is built: its pages run in browsers. Built when `ui/` or the lock file has changed since, under
 * the same lock as an install. A service without it works, and says at `/dashboard` what to do; so a build that fails is a remark.
 */
import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { lockfile, modules, readText, Refusal, root, say } from "./project.mjs";

const sources = join(root, "ui");
const builds = join(sources, "built");
const current = join(builds, "current");
const script = join(root, "scripts", "build-dashboard.ts");

/** Files that make the build, sorted; `built` is what it makes. */
function listSources(folder = sources, prefix = "") {
  return readdirSync(folder, { withFileTypes: true })
    .filter(({ name }) => prefix !== "" || name !== "built")
    .flatMap((entry) => {
      const path = prefix === "" ? entry.name : `${prefix}/${entry.name}`;
      return entry.isDirectory() ? listSources(join(folder, entry.name), path) : [path];
    })
    .sort((one, other) => (one < other ? -1 : 1));
}

function hashSources() {
  const hash = createHash("sha256");
  const files = listSources().map((path) => [path, join(sources, path)]);
  for (const [name, path] of [...files, ["lock", lockfile], ["build", script]]) {
    const bytes = readFileSync(path);
    hash.update(`${name}\0${bytes.length}\0`).update(bytes);
  }
  return hash.digest("hex").slice(0, 32);
}

const isBuilt = (hash) => readText(current)?.trim() === hash && existsSync(join(builds, hash, "index.html"));

/** A checkout without `ui/` has no dashboard, and an install without development packages can't build one. */
export function isDashboardStale() {
  return existsSync(join(sources, "index.html")) && !isBuilt(hashSources());
}

/** Throws Refusal with what the build said. */
export async function buildDashboard() {
  if (!existsSync(join(modules, "vite")))
    throw new Refusal(
      "The dashboard can't be built: the development packages are not installed. Run: npm run setup",
    );
  const { takeLock } = await import("./one-at-a-time.mjs");
  const lock = await takeLock();
  try {
    // Again under the lock: another set-up may just have done it.
    const hash = hashSources();
    if (isBuilt(hash)) return;
    checkWritable();
    const started = Date.now();
    const { code, output } = await runBuild(hash, lock);
    if (code !== 0) throw new Refusal(`${output}\nlatchkey: the dashboard can't be built (exit ${code}).`);
    say(`latchkey: dashboard built in ${((Date.now() - started) / 1000).toFixed(1)} s`);
  } finally {
    lock.release();
  }
}

async function runBuild(hash, lock) {
  const own = join(modules, ".bin", "node");
  const child = spawn(existsSync(own) ? own : process.execPath, [script, hash], {
    cwd: root,
    stdio: ["ignore", "pipe", "pipe"],
  });
  let output = "";
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding("utf8").on("data", (text) => (output += text));
  const heartbeat = setInterval(() => lock.touch(), 1_000);
  try {
    return await new Promise((resolve, reject) => {
      child.on("error", reject).on("close", (code) => resolve({ code, output }));
    });
  } finally {
    clearInterval(heartbeat);
  }
}

function checkWritable() {
  const probe = join(sources, `.writable.${process.pid}`);
  try {
    writeFileSync(probe, "");
  } catch (error) {
    throw new Refusal(
      `The dashboard has to be built, but ${sources} cannot be written (${error.code}). Run as the owner of the folder: npm run build:ui`,
    );
  } finally {
    rmSync(probe, { force: true });
  }
}
