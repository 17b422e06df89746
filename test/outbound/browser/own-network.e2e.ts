// LATCHKEY_BROWSER_NETWORK=own: a network in which there is nothing but the gate, whatever a Chromium does.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { readFileSync, readlinkSync } from "node:fs";
import { join } from "node:path";
import { test, type TestContext } from "node:test";
import { promisify } from "node:util";
import { must } from "#lib/assert.ts";
import { requireOwnNetwork } from "#outbound/browser/own-network.ts";
import { testInAll } from "../../tiers.ts";
import { letItTry, openTrap, startHostile, WITHOUT_WEBRTC } from "./hostile.ts";
import { openStage, ownAddress, startSite, without } from "./stage.ts";

const run = promisify(execFile);

const isRoot = process.getuid?.() === 0;
const OWN = { network: "own" } as const;

/** Whether the test is skipped, because this machine or its user can't do it. */
async function isSkipped(t: TestContext): Promise<boolean> {
  const why = await requireOwnNetwork().then(
    () => null,
    (error: unknown) => (error as Error).message,
  );
  if (why !== null) t.skip(why);
  return why !== null;
}

test("a browser in a network of its own reaches its hosts by the gate, and nothing without it", async (t) => {
  if (await isSkipped(t)) return;
  const site = await startSite(t, { "/": "<p>page</p>" });
  const stage = await openStage(t, { settings: OWN, edit: WITHOUT_WEBRTC });
  // The packets of `egress.e2e.ts`, which the same Chromium sends in the network of this machine.
  const checked = must(await stage.browsers.check(), "a Chromium");
  assert.deepEqual([checked.hasOwnNetwork, checked.leaks], [true, false]);
  const { page } = await stage.open({ hosts: [site.origin] });
  assert.equal((await page.goto(`${site.origin}/`))?.status(), 200);
  const folder = join(stage.folder, "latchkey-browser-0-0");
  const { pid } = JSON.parse(readFileSync(join(folder, "pid"), "utf8")) as { readonly pid: number };
  assert.notEqual(readlinkSync(`/proc/${pid}/ns/net`), readlinkSync("/proc/self/ns/net"));
  // The header has two lines. The only interface is loopback.
  const interfaces = readFileSync(`/proc/${pid}/net/dev`, "utf8").trim().split("\n").slice(2);
  assert.deepEqual(
    interfaces.map((line) => line.trim().split(":")[0]),
    ["lo"],
  );
});

testInAll(
  "the packets of the fast test",
  "without any switch, no channel of a page gets out of a network of its own",
  {},
  async (t) => {
    if (await isSkipped(t)) return;
    const trap = await openTrap(t);
    const names = ["127.0.0.1", "localhost", "[::1]", "trap.test", must(ownAddress(), "an address")];
    const site = await startHostile(
      t,
      names.map((name) => `http://${name}:${trap.port}`),
    );
    const edit = [WITHOUT_WEBRTC, without("--host-resolver-rules"), without("--proxy-")].join("\n");
    const stage = await openStage(t, {
      gate: { allow: [`127.0.0.1:${site.port}`], resolve: async () => ["127.0.0.1"] },
      settings: OWN,
      edit,
    });
    const browser = await letItTry(stage, site, { resources: "any" });
    assert.deepEqual(trap.seen, []);
    assert.equal(trap.packets(), 0);
    assert.equal(browser.failure, null);
  },
);

test(
  "an ordinary user is told why there is none",
  { skip: !isRoot && "only root can be another user" },
  async () => {
    const module = join(import.meta.dirname, "../../../src/outbound/browser/own-network.ts");
    const script = `import(${JSON.stringify(module)}).then(({ requireOwnNetwork }) => requireOwnNetwork()).catch((error) => console.log(error.failure, error.message))`;
    const { stdout } = await run(process.execPath, ["--disable-warning=ExperimentalWarning", "-e", script], {
      uid: 65_533,
      gid: 65_533,
      env: {},
    });
    assert.match(stdout, /^browser_missing LATCHKEY_BROWSER_NETWORK=own needs a worker that runs as root\./);
  },
);
