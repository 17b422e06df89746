/**
 * Installs the dependencies when they are missing or stale; npm runs it before `demo`, `test`, `check` and
 * `generate`, and `./latchkey` before its first start. Plain JavaScript for Node 20 and later, no
 * dependencies, nothing printed and no process started when there is nothing to do. Never calls a system
 * package manager. `--tests` also looks for the Chromium that browser tests need. Then the dashboard is built when
 * its sources have changed; `--dashboard` makes a failure of that a failure of the set-up.
 */
import { accessSync, constants, existsSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { buildDashboard, isDashboardStale } from "./setup/dashboard-build.mjs";
import { lockfile, modules, readText, Refusal, root, say } from "./setup/project.mjs";

/** A copy of the lock file that node_modules was installed from; `./latchkey` compares it too. */
const marker = join(modules, ".latchkey-lock");
const nodeMajor = Number(process.versions.node.split(".")[0]);

function matchesPlatform(entry) {
  const fits = (wanted, own) => {
    const list = wanted === undefined ? [] : [wanted].flat();
    if (list.includes(`!${own}`)) return false;
    const positive = list.filter((name) => !name.startsWith("!"));
    return positive.length === 0 || positive.includes(own);
  };
  return fits(entry.os, process.platform) && fits(entry.cpu, process.arch);
}

/**
 * Whether node_modules holds what the lock file says, by npm's own record of its last install. So a plain
 * `npm ci` or `npm install` counts, and nothing is downloaded twice.
 */
function isInstalledByNpm() {
  const [wantedText, presentText] = [readText(lockfile), readText(join(modules, ".package-lock.json"))];
  if (wantedText === undefined || presentText === undefined) return false;
  const wanted = JSON.parse(wantedText).packages;
  const present = JSON.parse(presentText).packages;
  const isSame = (path) =>
    wanted[path]?.version === present[path]?.version && wanted[path]?.integrity === present[path]?.integrity;
  const isNeeded = (path) => {
    const entry = wanted[path];
    if (entry.link === true) return false;
    if (entry.optional !== true) return true;
    // Of the optional packages those for this machine, as far as that can be told (not the C library).
    return entry.os !== undefined && entry.libc === undefined && matchesPlatform(entry);
  };
  const paths = Object.keys(wanted).filter((path) => path.startsWith("node_modules/"));
  const isComplete = paths
    .filter(isNeeded)
    .every((path) => isSame(path) && existsSync(join(root, path, "package.json")));
  return isComplete && Object.keys(present).every(isSame);
}

/** Up to date: the marker equals the lock file, or npm's record does (then the marker is written). */
function isUpToDate() {
  const wanted = readText(lockfile);
  if (wanted === undefined) {
    throw new Refusal(
      `${lockfile} is missing. Restore it from the repository: git checkout package-lock.json`,
    );
  }
  if (readText(marker) === wanted) return true;
  if (!isInstalledByNpm()) return false;
  try {
    writeMarker(wanted);
  } catch {
    // A folder of somebody else: the comparison is made again next time, that is all.
  }
  return true;
}

function writeMarker(text) {
  const temporary = `${marker}.${process.pid}`;
  writeFileSync(temporary, text);
  renameSync(temporary, marker);
}

async function install() {
  // Imported here because a set-up that has nothing to do must not cost anything.
  const [{ takeLock }, npm] = await Promise.all([
    import("./setup/one-at-a-time.mjs"),
    import("./setup/npm.mjs"),
  ]);
  npm.checkWritable();
  const lock = await takeLock();
  try {
    if (isUpToDate()) return; // another set-up has just done it
    const wanted = readFileSync(lockfile, "utf8");
    const verb = existsSync(modules) ? "renewing" : "installing";
    const count = Object.keys(JSON.parse(wanted).packages).length - 1;
    say(
      `latchkey: ${verb} the dependencies with npm ` +
        `(a lock file of ${count} packages; this can take a minute, none of their scripts is run)`,
    );
    rmSync(marker, { force: true }); // from here on, an interrupted install shows
    const seconds = await npm.installPackages(lock);
    writeMarker(wanted);
    say(`latchkey: dependencies installed in ${seconds} s`);
  } finally {
    lock.release();
  }
}

/** Node 24 comes as a package for Linux on x64 and arm64; elsewhere the machine's own has to be one. */
function checkNode() {
  const own = join(modules, ".bin", "node");
  if (existsSync(own)) return;
  if (nodeMajor >= 24) return;
  throw new Refusal(
    `Latchkey runs on Node 24 or later. For ${process.platform} on ${process.arch} npm has no Node package that ` +
      `is used here, and this machine's Node is ${process.versions.node}: install Node 24 from https://nodejs.org.`,
  );
}

function isExecutable(path) {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

/** The tests look in this order; the last resort is the npm package, which runs where nothing is installed. */
function checkChromium() {
  const chosen = process.env["LATCHKEY_CHROMIUM"];
  if (chosen !== undefined && chosen !== "") {
    if (isExecutable(chosen)) return;
    throw new Refusal(`LATCHKEY_CHROMIUM is ${chosen}, which cannot be executed. Correct it or unset it.`);
  }
  const usual = ["/usr/bin/chromium-headless-shell", "/usr/bin/chromium", "/usr/bin/google-chrome"];
  if (usual.some(isExecutable)) return;
  const isPackaged = process.platform === "linux" && process.arch === "x64";
  if (isPackaged && existsSync(join(modules, "@sparticuz", "chromium"))) return;
  say(
    "latchkey: no Chromium found, so the browser tests cannot pass. Install one " +
      "(Debian: chromium-headless-shell) or set LATCHKEY_CHROMIUM to its path.",
  );
}

/** Without a dashboard everything else works. */
async function prepareDashboard() {
  if (!isDashboardStale()) return;
  try {
    await buildDashboard();
  } catch (error) {
    if (!(error instanceof Refusal) || process.argv.includes("--dashboard")) throw error;
    say(error.message);
  }
}

async function main() {
  if (nodeMajor < 20) {
    throw new Refusal(
      `Node ${process.versions.node} is too old to set Latchkey up: it needs Node 20 or later, from https://nodejs.org.`,
    );
  }
  if (!isUpToDate()) await install();
  checkNode();
  await prepareDashboard();
  if (process.argv.includes("--tests")) checkChromium();
}

try {
  await main();
} catch (error) {
  if (!(error instanceof Refusal)) throw error;
  say(error.message);
  process.exitCode = 1;
}
