// Everything that a browser is started with closes something, and it is open without: taken away one at a time.
import assert from "node:assert/strict";
import {
  chmodSync,
  existsSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test, type TestContext } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { chromium, type LaunchOptions } from "playwright-core";
import { must } from "#lib/assert.ts";
import type { OpenBrowser } from "#outbound/browser/open-browser.ts";
import { ProcessTree } from "#outbound/browser/process-tree.ts";
import { findDebianChromium, skipDebian, type DebianChromium } from "../../browser/debian-chromium.ts";
import { openStage, startSite, type Stage } from "./stage.ts";

const isRoot = process.getuid?.() === 0;
const STRACE = "/usr/bin/strace";
/** How long a Chromium has for what it does late, or by itself. */
const SETTLE_MS = 4_000;

/** Where a part stands: in the driver's options, or in the file that the driver starts. */
type Place = "switch" | "launch" | "context" | "launcher";

interface Part {
  readonly place: Place;
  /** The beginning of a switch, the key of an option, or words of the launcher's file. */
  readonly name: string;
  readonly chromium?: DebianChromium;
  readonly skip?: string | false;
  /** Whether what it closes is closed. */
  readonly isClosed: (t: TestContext, open: typeof openStage) => Promise<boolean>;
}

/** What the next browser is started without. */
let missing: Part | null = null;
/** Switches and options that the product has given the driver. */
const given = new Set<string>();

const launch = chromium.launch.bind(chromium);

before(() => {
  chromium.launch = async (options = {}) => {
    const browser = await launch(edited(options));
    const newContext = browser.newContext.bind(browser);
    browser.newContext = async (wanted = {}) => await newContext(without("context", wanted));
    return browser;
  };
});
after(() => {
  chromium.launch = launch;
});

function edited({ args = [], executablePath = "", ...options }: LaunchOptions): LaunchOptions {
  for (const each of args) given.add(`switch ${each.split("=")[0] ?? ""}`);
  if (missing?.place === "launcher") {
    const text = readFileSync(executablePath, "utf8");
    const shorter = text.replaceAll(missing.name, "");
    assert.notEqual(shorter, text, `the launcher has ${missing.name}`);
    writeFileSync(executablePath, shorter);
  }
  return {
    ...without("launch", { executablePath, ...options }),
    args: args.filter((each) => missing?.place !== "switch" || !each.startsWith(missing.name)),
  };
}

function without<T extends object>(place: Place, options: T): T {
  for (const name of Object.keys(options)) given.add(`${place} ${name}`);
  return Object.fromEntries(
    Object.entries(options).filter(([name]) => missing?.place !== place || missing.name !== name),
  ) as T;
}

const isWithoutLeak: Part["isClosed"] = async (t, open) =>
  !must(await (await open(t)).browsers.check(), "a Chromium").leaks;

/** Of the only browser that is open. */
const folderOf = (stage: Stage): string =>
  join(stage.folder, `latchkey-browser-${process.getuid?.() ?? 0}-0`);

function pidsOf(stage: Stage): readonly number[] {
  const { pid } = JSON.parse(readFileSync(join(folderOf(stage), "pid"), "utf8")) as { readonly pid: number };
  return new ProcessTree(pid).look();
}

type Kind = "main" | "renderer";

/** What `/proc` says of a process of the browser with a page, by this line of a file; null: it does not start. */
const says =
  (kind: Kind, file: string, line: RegExp, wanted: string | RegExp): Part["isClosed"] =>
  async (t, open) => {
    const stage = await open(t);
    const site = await startSite(t, { "/": "<p>page</p>" });
    const browser = await stage.open({ hosts: [site.origin] }).catch(() => null);
    await browser?.page.goto(`${site.origin}/`);
    const found = (browser === null ? [] : pidsOf(stage))
      .filter((pid) => kindOf(pid) === kind)
      .map((pid) => line.exec(readFileSync(`/proc/${pid}/${file}`, "latin1"))?.[1] ?? "");
    return (
      found.length > 0 &&
      found.every((each) => (typeof wanted === "string" ? each === wanted : wanted.test(each)))
    );
  };

/** Null: it is none of Chromium's, or none of these. */
function kindOf(pid: number): Kind | null {
  const command = readFileSync(`/proc/${pid}/cmdline`, "latin1");
  if (command.includes("--type=renderer")) return "renderer";
  return command.includes("--remote-debugging-pipe") && !/--type=|^\S*(unshare|setpriv)\0/.test(command)
    ? "main"
    : null;
}

/** Names are looked up by the gate alone. */
async function isLookedUpByGate(t: TestContext, open: typeof openStage): Promise<boolean> {
  const servers = `[{ urls: ["turn:turn.latchkey.test:3478?transport=tcp", "turns:turn.latchkey.test:5349"], username: "u", credential: "c" }]`;
  const site = await startSite(t, {
    "/": `<script>
      const p = new RTCPeerConnection({ iceServers: ${servers} });
      p.createDataChannel("d");
      p.createOffer().then((offer) => p.setLocalDescription(offer));
      fetch("http://fetch.latchkey.test/").catch(() => {});
    </script>`,
  });
  const traced = `PREFIX="${STRACE} -f -qq -e trace=connect,sendto,sendmsg,sendmmsg -s 200 -o $HOME/strace"`;
  const stage = await open(t, { edit: traced });
  const { page } = await stage.open({ hosts: [site.origin], resources: "any" });
  await page.goto(`${site.origin}/`);
  await sleep(SETTLE_MS);
  // In the packet of a look-up, each label has its length before it, which strace writes as an octal escape.
  return !/\\10latchkey\\4test/.test(readFileSync(join(folderOf(stage), "home/strace"), "latin1"));
}

/** A frame of another site has a session of its own, which sees its redirects. */
async function isFrameApart(t: TestContext, open: typeof openStage): Promise<boolean> {
  const site = await startSite(t, { "/": "<h1>page</h1>", "/frame": "<p>frame</p>" });
  const other = `http://localhost:${site.port}`;
  const { page, context } = await (await open(t)).open({ hosts: [site.origin, other] });
  await page.goto(`${site.origin}/`);
  await page.setContent(`<iframe src="${other}/frame"></iframe>`);
  await page.frameLocator("iframe").getByText("frame").waitFor();
  return await context.newCDPSession(must(page.frames()[1], "the frame")).then(
    () => true,
    () => false,
  );
}

/** What a full Chromium asks for by itself, here of a server of the test, gets nowhere. */
async function isChromiumSilent(t: TestContext, open: typeof openStage): Promise<boolean> {
  const own = await startSite(t, () => undefined);
  const urls = [`--gaia-url=${own.origin}`, `--google-apis-url=${own.origin}`];
  const stage = await open(t, { edit: `set -- ${urls.join(" ")} "$@"` });
  await stage.open({ hosts: [] });
  await sleep(2 * SETTLE_MS);
  return own.asked.length === 0;
}

/** Nothing of the driver's is left in the folder for temporary files. */
async function isNothingLeft(t: TestContext, open: typeof openStage): Promise<boolean> {
  const folder = mkdtempSync(join(tmpdir(), "latchkey-test-temporary-"));
  const shared = process.env["TMPDIR"];
  process.env["TMPDIR"] = folder;
  t.after(() => {
    if (shared === undefined) delete process.env["TMPDIR"];
    else process.env["TMPDIR"] = shared;
    rmSync(folder, { recursive: true, force: true });
  });
  chmodSync(folder, 0o755);
  await (await open(t)).open({ hosts: [] });
  return !readdirSync(folder).some((name) => name.startsWith("playwright-artifacts"));
}

/** A program that does nothing is given up after half a minute, and not after the driver's three. */
async function isGivenUp(t: TestContext, open: typeof openStage): Promise<boolean> {
  const stage = await open(t, { edit: "exec sleep 300" });
  const stop = new AbortController();
  const opening = stage.open({ hosts: [], timeoutMs: 300_000, signal: stop.signal }).then(
    () => "opened",
    (error: unknown) => (error as Error).message,
  );
  const ended = await Promise.race([opening, sleep(45_000, null)]);
  stop.abort();
  await opening;
  return ended === "Chromium did not start in time";
}

const leavesSignal =
  (signal: NodeJS.Signals): Part["isClosed"] =>
  async (t, open) => {
    const before = process.listenerCount(signal);
    await (await open(t)).open({ hosts: [] });
    return process.listenerCount(signal) === before;
  };

async function openWith(
  t: TestContext,
  open: typeof openStage,
  pages: Parameters<typeof startSite>[1],
): Promise<readonly [OpenBrowser, Awaited<ReturnType<typeof startSite>>, opened: boolean]> {
  const site = await startSite(t, pages);
  const browser = await (await open(t)).open({ hosts: [site.origin] });
  const answer = await browser.page.goto(`${site.origin}/`).catch(() => null);
  return [browser, site, answer?.ok() === true];
}

const isReached: Part["isClosed"] = async (t, open) => (await openWith(t, open, { "/": "page" }))[2];

/** No service worker, whose requests no hook sees. */
async function isWithoutServiceWorker(t: TestContext, open: typeof openStage): Promise<boolean> {
  const [{ page }, site] = await openWith(t, open, (request, response) => {
    const type = request.url === "/worker.js" ? "text/javascript" : "text/html";
    response.writeHead(200, { "content-type": type }).end("");
  });
  // The driver replaces `register` by a function that does nothing.
  await Promise.race([page.evaluate("navigator.serviceWorker.register('/worker.js')"), sleep(1_000)]);
  return !site.asked.some((path) => path.endsWith("/worker.js"));
}

async function isDownloadRefused(t: TestContext, open: typeof openStage): Promise<boolean> {
  const [{ page }] = await openWith(t, open, (request, response) => {
    if (request.url === "/file") response.writeHead(200, { "content-disposition": "attachment" }).end("file");
    else response.writeHead(200, { "content-type": "text/html" }).end("<a href=/file>file</a>");
  });
  const [download] = await Promise.all([page.waitForEvent("download"), page.getByText("file").click()]);
  return (await download.failure()) !== null;
}

/** It is started by the launcher, which writes down its process. */
async function isLaunched(t: TestContext, open: typeof openStage): Promise<boolean> {
  const stage = await open(t);
  return await stage.open({ hosts: [] }).then(
    () => existsSync(join(folderOf(stage), "pid")),
    () => false,
  );
}

const skipUser = !isRoot && "only root can be another user";

const PARTS: readonly Part[] = [
  // A headless shell heeds the first, a full Chromium the second.
  {
    place: "switch",
    name: "--force-webrtc-ip-handling-policy",
    chromium: "chromium-headless-shell",
    isClosed: isWithoutLeak,
  },
  { place: "switch", name: "--webrtc-ip-handling-policy", chromium: "chromium", isClosed: isWithoutLeak },
  {
    place: "switch",
    name: "--host-resolver-rules",
    skip: !existsSync(STRACE) && "strace is not installed",
    isClosed: isLookedUpByGate,
  },
  { place: "switch", name: "--site-per-process", isClosed: isFrameApart },
  { place: "launch", name: "executablePath", isClosed: isLaunched },
  // Nothing of the worker's, which may have secrets.
  { place: "launch", name: "env", isClosed: says("main", "environ", /(?:^|\0)(LATCHKEY_\w+)=/, "") },
  { place: "launch", name: "artifactsDir", isClosed: isNothingLeft },
  // 2: its system calls are filtered.
  {
    place: "launch",
    name: "chromiumSandbox",
    isClosed: says("renderer", "status", /^Seccomp:\s+(\d)/m, "2"),
  },
  { place: "launch", name: "proxy", chromium: "chromium", isClosed: isChromiumSilent },
  { place: "launch", name: "timeout", isClosed: isGivenUp },
  { place: "launch", name: "handleSIGINT", isClosed: leavesSignal("SIGINT") },
  { place: "launch", name: "handleSIGTERM", isClosed: leavesSignal("SIGTERM") },
  { place: "launch", name: "handleSIGHUP", isClosed: leavesSignal("SIGHUP") },
  { place: "context", name: "proxy", isClosed: isReached },
  { place: "context", name: "serviceWorkers", isClosed: isWithoutServiceWorker },
  { place: "context", name: "acceptDownloads", isClosed: isDownloadRefused },
  ...(
    [
      ["--reuid=61184", "status", /^Uid:\s+(\d+)/m, "61184"],
      ["--regid=61184", "status", /^Gid:\s+(\d+)/m, "61184"],
      ["--clear-groups", "status", /^Groups:[ \t]*(.*?)[ \t]*$/m, ""],
      ["--no-new-privs", "status", /^NoNewPrivs:\s+(\d)/m, "1"],
    ] as const
  ).map(([name, file, line, wanted]): Part => ({
    place: "launcher",
    name: `'${name}' `,
    skip: skipUser,
    isClosed: says("main", file, line, wanted),
  })),
  {
    place: "launcher",
    name: "ulimit -c 0\n",
    isClosed: says("main", "limits", /^Max core file size\s+(.*?)\s+bytes/m, /^0\s+0$/),
  },
  {
    place: "launcher",
    name: "ulimit -f 2097152\n",
    isClosed: says("main", "limits", /^Max file size\s+(\S+)/m, "1073741824"),
  },
  {
    place: "launcher",
    name: "ulimit -d 1048576\n",
    isClosed: says("main", "limits", /^Max data size\s+(\S+)/m, "1073741824"),
  },
];

for (const part of PARTS) {
  const { place, name, chromium: wanted, isClosed } = part;
  test(
    `${name.trim()} (${place}) closes what is open without it`,
    { skip: part.skip || (wanted !== undefined && skipDebian) },
    async (t) => {
      const given = wanted === undefined ? {} : { chromium: await findDebianChromium(wanted) };
      const open: typeof openStage = async (context, options) =>
        await openStage(context, { ...given, ...options });
      // A stage ends with its test.
      await t.test("with it", async (inner) => {
        missing = null;
        assert.equal(await isClosed(inner, open), true);
      });
      await t.test("without it", async (inner) => {
        missing = part;
        try {
          assert.equal(await isClosed(inner, open), false);
        } finally {
          missing = null;
        }
      });
    },
  );
}

test("there is no other switch or option", () => {
  const listed = PARTS.filter(({ place }) => place !== "launcher").map(
    ({ place, name }) => `${place} ${name}`,
  );
  assert.deepEqual([...given].toSorted(), listed.toSorted());
});
