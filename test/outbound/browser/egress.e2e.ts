// What a hostile page sends goes through the gate or nowhere. Each switch taken away: outbound/browser/switches.
import assert from "node:assert/strict";
import { test } from "node:test";
import { must } from "#lib/assert.ts";
import {
  DEBIAN_CHROMIUMS,
  findDebianChromium,
  skipDebian,
  type DebianChromium,
} from "../../browser/debian-chromium.ts";
import { eventually } from "../../eventually.ts";
import { testInAll } from "../../tiers.ts";
import { CHANNELS } from "./channels.ts";
import { letItTry, openTrap, startHostile, WITHOUT_WEBRTC } from "./hostile.ts";
import { openStage, ownAddress, startSite } from "./stage.ts";

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
    const silent = (): readonly string[] =>
      Object.keys(CHANNELS)
        .filter((name) => !trap.seen.some((line) => line.includes(`/${name} `)))
        .toSorted();
    const isOver = (): true | undefined => (silent().length <= SILENT.length ? true : undefined);
    await eventually("the last channel has arrived", isOver, ARRIVE_MS).catch(() => undefined);
    assert.deepEqual(silent(), SILENT);
  },
);

const ARRIVE_MS = 60_000;

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

test("a frame of another site has a process and a session of its own", async (t) => {
  const site = await startSite(t, { "/": "<h1>page</h1>", "/frame": "<p>frame</p>" });
  const other = `http://localhost:${site.port}`;
  const { page, context } = await (await openStage(t)).open({ hosts: [site.origin, other] });
  await page.goto(`${site.origin}/`);
  await page.setContent(`<iframe src="${other}/frame"></iframe>`);
  await page.frameLocator("iframe").getByText("frame").waitFor();
  await (await context.newCDPSession(must(page.frames()[1], "the frame"))).detach();
});
