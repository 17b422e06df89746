// A browser is a process tree and a folder of its own, with limits, and nothing of either is left.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { chmodSync, chownSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test, type TestContext } from "node:test";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { pino } from "pino";
import { BrowserError, type BrowserFailure } from "#outbound/browser/browser-error.ts";
import { openBrowsers } from "#outbound/browser/browsers.ts";
import type { BrowserRequest, OpenBrowser, WatchedBrowser } from "#outbound/browser/open-browser.ts";
import { ProcessTree, readProcesses } from "#outbound/browser/process-tree.ts";
import { PID_FILE } from "#outbound/browser/run-folder.ts";
import { openGate } from "#outbound/gate.ts";
import { until } from "../../eventually.ts";
import { testInAll } from "../../tiers.ts";
import { SETTINGS } from "./browser-settings.ts";
import { openStage, prepareProgram, startSite, type Stage } from "./stage.ts";

const isRoot = process.getuid?.() === 0;

/** The processes of the browsers in this folder, from now on, whether or not the folder stays. */
function watchTrees(folder: string): () => readonly number[] {
  const trees = readdirSync(folder).map((name) => {
    const { pid } = JSON.parse(readFileSync(join(folder, name, PID_FILE), "utf8")) as { pid: number };
    return new ProcessTree(pid);
  });
  const look = (): readonly number[] => trees.flatMap((tree) => tree.look());
  look();
  return look;
}

const fieldOf = (pid: number, name: string): string =>
  new RegExp(`^${name}:\\s+(\\S+)`, "m").exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1] ?? "";

/** Waits for the end that the page brings about. */
async function endOf(browser: OpenBrowser): Promise<BrowserFailure | undefined> {
  await until("the browser ends", () => browser.failure !== null);
  return browser.failure?.failure;
}

/** Nothing of it is left: no process, and no folder. */
async function assertNothingLeft(stage: Stage, pidsOf: () => readonly number[]): Promise<void> {
  assert.deepEqual(readdirSync(stage.folder), []);
  await until("no process is left", () => pidsOf().length === 0);
}

/** A folder for what the driver leaves, apart from that of other tests, which have drivers of their own. */
function ownTemporaryFolder(t: TestContext): string {
  const shared = process.env["TMPDIR"];
  const folder = mkdtempSync(join(tmpdir(), "latchkey-test-temporary-"));
  chmodSync(folder, 0o755);
  process.env["TMPDIR"] = folder;
  t.after(() => {
    if (shared === undefined) delete process.env["TMPDIR"];
    else process.env["TMPDIR"] = shared;
    rmSync(folder, { recursive: true, force: true });
  });
  return folder;
}

test("a browser has a user, a folder and an environment of its own, and its sandbox", async (t) => {
  const site = await startSite(t, { "/": "<p>page</p>" });
  const stage = await openStage(t, { settings: { max: 2 } });
  const temporary = ownTemporaryFolder(t);
  const [one, two] = [await stage.open({ hosts: [site.origin] }), await stage.open({ hosts: [site.origin] })];
  await one.page.goto(`${site.origin}/`);
  const pidsOf = watchTrees(stage.folder);
  // The first process of each waits for the others, with our user, where there is a pid namespace.
  const pids = pidsOf().filter((pid) => !readFileSync(`/proc/${pid}/comm`, "utf8").startsWith("unshare"));
  assert.ok(pids.length > 8, `${pids.length} processes`);
  const uids = new Set(pids.map((pid) => fieldOf(pid, "Uid")));
  assert.deepEqual([...uids].toSorted(), isRoot ? ["61184", "61185"] : [String(process.getuid?.())]);
  // A renderer's system calls are filtered: 2 is a seccomp filter. Nobody in the tree can get more rights.
  const renderers = pids.filter((pid) =>
    readFileSync(`/proc/${pid}/cmdline`, "latin1").includes("--type=renderer"),
  );
  assert.ok(renderers.length > 0);
  for (const pid of renderers) assert.equal(fieldOf(pid, "Seccomp"), "2");
  if (isRoot) for (const pid of pids) assert.equal(fieldOf(pid, "NoNewPrivs"), "1");
  // Of a process that has just ended there is none.
  const environment = pids
    .map((pid) => readFileSync(`/proc/${pid}/environ`, "latin1").split("\0").filter(Boolean))
    .find(({ length }) => length > 0);
  const names = (environment ?? []).map((each) => each.split("=")[0] ?? "");
  // Those of the shell, and of the tests' own program.
  const added = ["PWD", "OLDPWD", "FONTCONFIG_PATH", "LD_LIBRARY_PATH"];
  assert.deepEqual(names.filter((name) => !added.includes(name)).toSorted(), [
    "HOME",
    "LANG",
    "PATH",
    "TMPDIR",
  ]);
  await Promise.all([one.close(), two.close()]);
  await assertNothingLeft(stage, pidsOf);
  assert.deepEqual(
    readdirSync(temporary).filter((name) => name.startsWith("playwright")),
    [],
  );
});

const HOSTILE: Readonly<Record<string, string>> = {
  hangs: "setTimeout(() => { for (;;); }, 0)",
  alerts: "setTimeout(() => { for (;;) alert('x'); }, 0)",
  "opens windows": "setInterval(() => window.open('/'), 20)",
  "starts workers": "setInterval(() => new Worker(URL.createObjectURL(new Blob(['for (;;);']))), 50)",
  "takes memory":
    "setTimeout(() => { const kept = []; for (;;) kept.push(new Uint8Array(64e6).fill(1)); }, 0)",
  downloads: "location = '/endless'",
  "adds frames":
    "setInterval(() => document.body.append(Object.assign(document.createElement('iframe'), { src: '/' })), 50)",
};

async function openHostile(
  t: TestContext,
  stage: Stage,
  script: string,
  request: Partial<BrowserRequest>,
): Promise<OpenBrowser> {
  const site = await startSite(t, (asked, answer) => {
    if (asked.url === "/")
      return void answer.setHeader("content-type", "text/html").end(`<body><script>${script}</script>`);
    // Without an end, as fast as it is taken.
    answer.writeHead(200, { "content-type": "application/zip", "content-disposition": "attachment" });
    const chunk = Buffer.alloc(65_536);
    const more = (): void => {
      while (!answer.destroyed && answer.write(chunk));
    };
    answer.on("drain", more);
    more();
  });
  const browser = await stage.open({ hosts: [site.origin], ...request });
  // It may end before the driver has seen it begin.
  await browser.page.goto(`${site.origin}/`, { waitUntil: "commit" }).catch(() => undefined);
  return browser;
}

test("a page that hangs ends at its limit, and waits of the driver with it", async (t) => {
  const stage = await openStage(t);
  const browser = await openHostile(t, stage, HOSTILE["hangs"] ?? "", { timeoutMs: 2_500 });
  const pidsOf = watchTrees(stage.folder);
  const error = browser.explain(await browser.page.evaluate("1").catch((thrown: unknown) => thrown));
  assert.equal(error.failure, "timeout");
  await browser.close();
  await assertNothingLeft(stage, pidsOf);
});

test("a page that takes memory is ended, and its processes with it", async (t) => {
  const stage = await openStage(t, { settings: { memoryBytes: 200 * 1_048_576 } });
  const browser = await openHostile(
    t,
    stage,
    "const kept = []; setInterval(() => kept.push(new Uint8Array(8e6).fill(1)), 20)",
    {},
  );
  const pidsOf = watchTrees(stage.folder);
  assert.match((await endOf(browser)) ?? "", /^browser_(memory|crashed)$/);
  await browser.close();
  await assertNothingLeft(stage, pidsOf);
});

test("a killed browser is a crash, a stopped run cancels it, and the next in line gets its place", async (t) => {
  const stage = await openStage(t, { settings: { max: 1 } });
  const first = await stage.open({ hosts: [], downloadBytesMax: 1_000 });
  const stop = new AbortController();
  const second = stage.open({ hosts: [], signal: stop.signal });
  const given = new AbortController();
  const third = stage.open({ hosts: [], signal: given.signal });
  given.abort();
  await assert.rejects(
    third,
    (error: unknown) => error instanceof BrowserError && error.failure === "cancelled",
  );
  assert.equal(readdirSync(stage.folder).length, 1);
  process.kill(Math.min(...watchTrees(stage.folder)()), "SIGKILL");
  assert.equal(await endOf(first), "browser_crashed");
  await first.close();
  // The look of the second may come while its folder is being removed.
  (first as WatchedBrowser).look(readProcesses());
  const opened = await second;
  const pidsOf = watchTrees(stage.folder);
  stop.abort();
  assert.equal(await endOf(opened), "cancelled");
  await opened.close();
  await assertNothingLeft(stage, pidsOf);
});

test("a missing program, and one that does not start, are explained", async (t) => {
  for (const [program, words] of [
    ["/nowhere/chromium", /LATCHKEY_BROWSER names \/nowhere\/chromium/],
    ["/bin/false", /\/bin\/false did not start/],
  ] as const) {
    const stage = await openStage(t, { settings: { program } });
    await assert.rejects(
      stage.open({ hosts: [] }),
      (error: unknown) =>
        error instanceof BrowserError && error.failure === "browser_missing" && words.test(error.message),
    );
    assert.deepEqual(readdirSync(stage.folder), []);
  }
});

/** Kills a worker that has a browser open, and lets another one sweep. */
async function killWorker(
  t: TestContext,
  user: { readonly uid: number; readonly gid: number } | null,
): Promise<void> {
  const program = await prepareProgram(t);
  const folder = mkdtempSync(join(tmpdir(), "latchkey-test-browsers-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  chmodSync(folder, 0o755);
  if (user !== null) chownSync(folder, user.uid, user.gid);
  const child = spawn(
    process.execPath,
    [
      "--disable-warning=ExperimentalWarning",
      join(import.meta.dirname, "browser-process.ts"),
      program,
      folder,
    ],
    {
      stdio: ["ignore", "pipe", "inherit"],
      ...user,
      // Such a user has neither a name nor a home.
      env: user === null ? process.env : { PATH: process.env["PATH"] },
    },
  );
  t.after(() => child.kill("SIGKILL"));
  await new Promise<void>((resolve, reject) => {
    child.stdout.once("data", () => resolve());
    child.once("exit", (code) => reject(new Error(`ended with ${code}`)));
  });
  const pidsOf = watchTrees(folder);
  const pids = pidsOf();
  assert.ok(pids.length > 3);
  if (user !== null) for (const pid of pids) assert.equal(fieldOf(pid, "Uid"), String(user.uid));
  const ended = new Promise((resolve) => child.once("exit", resolve));
  child.kill("SIGKILL");
  await ended;
  await until("no process is left", () => pidsOf().length === 0);
  assert.equal(readdirSync(folder).length, 1);
  if (user !== null) return;
  const browsers = openBrowsers({
    gate: openGate({ allow: [] }),
    log: pino({ level: "silent" }),
    settings: { ...SETTINGS, program },
    folder,
  });
  await browsers.sweep();
  assert.deepEqual(readdirSync(folder), []);
}

test("a worker that is killed takes its browser with it, and the next one removes the folder", async (t) => {
  await killWorker(t, null);
});

testInAll(
  "a worker that is killed, as the user of the tests",
  "a worker of an ordinary user that is killed takes its browser with it",
  { skip: !isRoot && "only root can be another user" },
  async (t) => await killWorker(t, { uid: 65_533, gid: 65_533 }),
);

/** What a run may take over its limit until nothing of it is left. */
const LATE_MS = 5_000;
/** Of nine more pages. The allocator keeps pages of its own beside the heap. */
const GROWN_MAX = { heapUsed: 4 * 1_048_576, rss: 48 * 1_048_576 } as const;

setFlagsFromString("--expose-gc");
const collect = runInNewContext("gc") as () => void;

function memoryInUse(): NodeJS.MemoryUsage {
  collect();
  return process.memoryUsage();
}

for (const [name, script] of Object.entries(HOSTILE))
  testInAll(
    "a page that hangs",
    `fifteen pages of which each ${name}: each ends at its limit, nothing is left, and a good one goes on`,
    {},
    async (t) => {
      const stage = await openStage(t, { settings: { max: 4 } });
      const good = await stage.open({ hosts: [] });
      const limit = { timeoutMs: 8_000, downloadBytesMax: name === "downloads" ? 4_000_000 : undefined };
      const trees: (() => readonly number[])[] = [];
      const memory: NodeJS.MemoryUsage[] = [];
      for (let round = 0; round < 5; round++) {
        const beganMs = performance.now();
        const all = await Promise.all(
          Array.from({ length: 3 }, async () => await openHostile(t, stage, script, limit)),
        );
        trees.push(watchTrees(stage.folder));
        for (const each of all)
          assert.match((await endOf(each)) ?? "", /^(timeout|browser_(memory|crashed)|download_too_large)$/);
        await Promise.all(all.map(async (each) => await each.close()));
        const tookMs = performance.now() - beganMs;
        assert.ok(tookMs <= limit.timeoutMs + LATE_MS, `${name}: ${Math.round(tookMs)} ms`);
        assert.equal(await good.page.evaluate("1 + 1"), 2);
        memory.push(memoryInUse());
      }
      // What the first ones load stays.
      for (const kind of ["heapUsed", "rss"] as const) {
        const grown = (memory.at(-1)?.[kind] ?? 0) - (memory[1]?.[kind] ?? 0);
        t.diagnostic(`${name}: ${Math.round(grown / 1_024)} KiB of ${kind} more`);
        assert.ok(grown < GROWN_MAX[kind], `${name}: ${grown} bytes of ${kind} more`);
      }
      await good.close();
      await assertNothingLeft(stage, () => trees.flatMap((each) => each()));
    },
  );
