// What a hostile page sends goes through the gate or nowhere.
import assert from "node:assert/strict";
import { createSocket, type Socket as UdpSocket } from "node:dgram";
import { existsSync, readFileSync } from "node:fs";
import { createServer, type AddressInfo } from "node:net";
import { join } from "node:path";
import { test, type TestContext } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import type { BrowserRequest, OpenBrowser } from "#outbound/browser/open-browser.ts";
import { must } from "#lib/assert.ts";
import {
  DEBIAN_CHROMIUMS,
  findDebianChromium,
  skipDebian,
  type DebianChromium,
} from "../../browser/debian-chromium.ts";
import { testInAll } from "../../tiers.ts";
import { CHANNELS, helper, hostilePage } from "./channels.ts";
import { openStage, ownAddress, startSite, without, type Site, type Stage } from "./stage.ts";

/** How long channels have that begin late. */
const SETTLE_MS = 1_500;
const WITHOUT_WEBRTC = [without("--force-webrtc"), without("--webrtc-ip")].join("\n");

interface Trap {
  readonly port: number;
  /** The first line of each connection. */
  readonly seen: string[];
  packets(): number;
}

/** Takes TCP and UDP on one port, on every address of this machine. */
async function openTrap(context: TestContext): Promise<Trap> {
  const seen: string[] = [];
  const server = createServer((socket) => {
    socket.on("error", () => undefined);
    socket.once("data", (data) => {
      seen.push(data.toString("latin1").split("\r\n")[0] ?? "");
      socket.end("HTTP/1.1 204 No Content\r\naccess-control-allow-origin: *\r\nconnection: close\r\n\r\n");
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "::", resolve));
  const { port } = server.address() as AddressInfo;
  let packets = 0;
  const udp: UdpSocket = createSocket("udp6").on("message", () => packets++);
  await new Promise<void>((resolve) => udp.bind(port, "::", resolve));
  context.after(async () => {
    udp.close();
    await new Promise((resolve) => server.close(resolve));
  });
  return { port, seen, packets: () => packets };
}

/** Serves the hostile page at `/`, and what its channels need of their own site. */
async function startHostile(
  context: TestContext,
  targets: readonly string[],
  scheme: "http" | "https" = "http",
): Promise<Site> {
  return await startSite(
    context,
    (request, response) => {
      const found = helper(request.url ?? "/");
      if (found !== null) response.writeHead(found.status, found.headers).end(found.body);
      else response.writeHead(200, { "content-type": "text/html" }).end(hostilePage(targets));
    },
    scheme,
  );
}

async function letItTry(stage: Stage, site: Site, request: Partial<BrowserRequest>): Promise<OpenBrowser> {
  const browser = await stage.open({ hosts: [site.origin], ...request });
  await browser.page.goto(`${site.origin}/`, { waitUntil: "commit" });
  await browser.page.waitForFunction("window.tried", null, { polling: 50 });
  await sleep(SETTLE_MS);
  return browser;
}

test(`a page that tries ${Object.keys(CHANNELS).length} channels reaches its hosts and nothing else`, async (t) => {
  const trap = await openTrap(t);
  const site = await startHostile(t, [`http://127.0.0.1:${trap.port}`, `http://localhost:${trap.port}`]);
  const stage = await openStage(t, { gate: { allow: [`127.0.0.1:${site.port}`] } });
  const browser = await letItTry(stage, site, { resources: "any" });
  assert.deepEqual(trap.seen, []);
  assert.equal(trap.packets(), 0);
  // They did try, and the gate refused by address: `any` is every public address.
  const refused = browser.refused().filter(({ origin }) => origin.includes(String(trap.port)));
  assert.ok(refused.length >= 2, JSON.stringify(browser.refused()));
  assert.equal(browser.failure, null);
  // Nothing leaks without this one: it is a second lock.
  assert.match(commandLineOf(stage), / --disable-quic /);
});

testInAll(
  "the same page with two targets",
  "the channels of the egress tests do reach what they may",
  {},
  async (t) => {
    const trap = await openTrap(t);
    const target = `http://127.0.0.1:${trap.port}`;
    const site = await startHostile(t, [target]);
    const stage = await openStage(t);
    await letItTry(stage, site, { hosts: [site.origin, target] });
    const arrived = Object.keys(CHANNELS).filter((name) =>
      trap.seen.some((line) => line.includes(`/${name} `)),
    );
    const silent = Object.keys(CHANNELS).filter((name) => !arrived.includes(name));
    assert.deepEqual(silent.toSorted(), SILENT);
  },
);

/** Channels that send nothing in a headless shell, whatever they may reach, or nothing that has a path. */
const SILENT = ["dnsPrefetch", "icon", "manifest", "preconnect", "webRtc", "webTransport"];

const SCHEMES = ["http", "https"] as const;
const CHROMIUMS = [null, ...DEBIAN_CHROMIUMS] as const;
const nameOf = (chromium: DebianChromium | null): string =>
  chromium === null ? "the Chromium of the tests" : `Debian's ${chromium}`;
const TRIALS = CHROMIUMS.flatMap((chromium) =>
  SCHEMES.flatMap((scheme) => ([[], "any"] as const).map((resources) => ({ chromium, scheme, resources }))),
);
for (const { chromium, scheme, resources } of TRIALS)
  testInAll(
    "the same page with two targets",
    `no channel of a page by ${scheme} reaches any address of this machine, with resources: ${resources.length === 0 ? "none" : "any"}, in ${nameOf(chromium)}`,
    { skip: chromium !== null && skipDebian },
    async (t) => {
      const trap = await openTrap(t);
      const names = [
        "127.0.0.1",
        "localhost",
        "[::1]",
        "0.0.0.0",
        "trap.test",
        must(ownAddress(), "an address"),
      ];
      const targets = [
        ...names.map((name) => `http://${name}:${trap.port}`),
        `https://127.0.0.1:${trap.port}`,
      ];
      const site = await startHostile(t, targets, scheme);
      const resolved: string[] = [];
      const gate = {
        allow: [`127.0.0.1:${site.port}`],
        // Rebinding: public at the first look-up, then not.
        resolve: async (name: string) => {
          resolved.push(name);
          return resolved.length === 1 ? ["192.0.2.1"] : ["127.0.0.1"];
        },
      };
      const stage = await openStage(t, {
        gate,
        edit: `set -- "$@" --ignore-certificate-errors`,
        chromium: chromium && (await findDebianChromium(chromium)),
      });
      const browser = await letItTry(stage, site, { resources });
      assert.deepEqual(trap.seen, []);
      assert.equal(trap.packets(), 0);
      assert.equal(browser.failure, null);
    },
  );

test("the check of an installed Chromium finds one whose pages send packets past the gate", async (t) => {
  const { browsers } = await openStage(t, { edit: WITHOUT_WEBRTC });
  assert.equal((await browsers.check())?.leaks, true);
});

testInAll(
  "a Chromium that leaks",
  "the check finds no leak in one that heeds our switches",
  {},
  async (t) => {
    const { browsers } = await openStage(t);
    assert.equal((await browsers.check())?.leaks, false);
  },
);

/** The switch that each heeds: both are there since each Chromium ignores the other's. */
const HEEDED: readonly (readonly [chromium: DebianChromium, edit: string])[] = [
  ["chromium-headless-shell", without("--force-webrtc")],
  ["chromium", without("--webrtc-ip")],
];
for (const [chromium, edit] of HEEDED)
  testInAll(
    "the packets of the fast test",
    `without one of the switches for WebRTC, packets get out of Debian's ${chromium}`,
    { skip: skipDebian },
    async (t) => {
      const trap = await openTrap(t);
      const site = await startHostile(t, [`http://127.0.0.1:${trap.port}`]);
      const stage = await openStage(t, {
        gate: { allow: [`127.0.0.1:${site.port}`] },
        edit,
        chromium: await findDebianChromium(chromium),
      });
      await letItTry(stage, site, {});
      assert.ok(trap.packets() > 0);
    },
  );

const STRACE = ["/usr/bin/strace"].find(existsSync);

testInAll(
  "the gate's resolver alone is asked (outbound/gate-proxy)",
  "names are looked up beside the gate only without the switch for it",
  { skip: STRACE === undefined && "strace is not installed" },
  async (t) => {
    const page = `<script>
      const servers = ['turn:turn.latchkey.test:3478?transport=tcp', 'turn:turn.latchkey.test:3478?transport=udp', 'turns:turn.latchkey.test:5349'];
      const p = new RTCPeerConnection({ iceServers: [{ urls: servers, username: 'u', credential: 'c' }, { urls: 'stun:stun.latchkey.test' }] });
      p.createDataChannel('d');
      p.createOffer().then((offer) => p.setLocalDescription(offer));
      fetch('http://fetch.latchkey.test/').catch(() => {});
    </script>`;
    for (const [edit, isLookedUp] of [
      [":", false],
      [without("--host-resolver-rules"), true],
    ] as const) {
      const site = await startSite(t, { "/": page });
      const log = `PREFIX="${STRACE} -f -qq -e trace=connect,sendto,sendmsg,sendmmsg -s 200 -o $HOME/strace"`;
      const stage = await openStage(t, { edit: `${edit}\n${log}` });
      const browser = await stage.open({ hosts: [site.origin], resources: "any" });
      await browser.page.goto(`${site.origin}/`);
      await sleep(2 * SETTLE_MS);
      const calls = readFileSync(join(folderOf(stage), "home/strace"), "latin1").split("\n");
      // In the packet of a look-up, each label has its length before it, which strace writes as an octal escape.
      const lookUps = calls.filter((line) => /\\10latchkey\\4test/.test(line));
      assert.equal(lookUps.length > 0, isLookedUp, lookUps.join("\n"));
      await browser.close();
    }
  },
);

/** Opens the session of a frame of another site. Rejects where it has no process of its own. */
async function enterForeignFrame(t: TestContext, edit?: string): Promise<void> {
  const site = await startSite(t, { "/": "<h1>page</h1>", "/frame": "<p>frame</p>" });
  const other = `http://localhost:${site.port}`;
  const stage = await openStage(t, { ...(edit !== undefined && { edit }) });
  const { page, context } = await stage.open({ hosts: [site.origin, other] });
  await page.goto(`${site.origin}/`);
  await page.setContent(`<iframe src="${other}/frame"></iframe>`);
  await page.frameLocator("iframe").getByText("frame").waitFor();
  const frame = must(page.frames()[1], "the frame");
  await (await context.newCDPSession(frame)).detach();
}

test("a frame of another site has a process and a session of its own", async (t) => {
  await enterForeignFrame(t);
});

testInAll("such a frame with the switch", "without --site-per-process it has neither", {}, async (t) => {
  await assert.rejects(
    enterForeignFrame(t, without("--site-per-process")),
    /does not have a separate CDP session/,
  );
});

/** Of the only browser that is open. */
const folderOf = (stage: Stage): string =>
  join(stage.folder, `latchkey-browser-${process.getuid?.() ?? 0}-0`);

function commandLineOf(stage: Stage): string {
  const { pid } = JSON.parse(readFileSync(join(folderOf(stage), "pid"), "utf8")) as { pid: number };
  return readFileSync(`/proc/${pid}/cmdline`, "latin1").replaceAll("\0", " ");
}
