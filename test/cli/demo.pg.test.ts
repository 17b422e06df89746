import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type Server } from "node:net";
import { describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { must } from "#lib/assert.ts";
import { eventually } from "../eventually.ts";
import { testInAll } from "../tiers.ts";
import { assertNothingLeft, BY_NPM, BY_SCRIPT, pressCtrlC, startDemo } from "./demo-process.ts";

/** Demos are over in less. */
const TAKE_MS = 60_000;

/** Takes a port; a demo of another test may have it just now. */
async function take(port: number): Promise<Server> {
  return await eventually(
    `port ${port} is free`,
    async () => {
      const server = createServer().listen(port, "127.0.0.1");
      return await once(server, "listening").then(
        () => server,
        () => undefined,
      );
    },
    TAKE_MS,
  );
}

describe("npm run demo", () => {
  test("with --once and both ports taken: others are picked, 240 records, 3 invalid, a replay, both ways the same; exit code 0", async () => {
    const taken = await Promise.all([take(8_080), take(4_600)]);
    const demo = startDemo([...BY_NPM, "--once"]);
    const { code, stdout, stderr } = await demo.ended;
    for (const server of taken) server.close();
    assert.equal(code, 0, stdout + stderr);

    const portal = must(
      /^Northwind Supplier Portal, .*: http:\/\/127\.0\.0\.1:(\d+)$/m.exec(stdout)?.[1],
      stdout,
    );
    const service = must(
      /^Latchkey: http:\/\/127\.0\.0\.1:(\d+) \(process \d+, data in /m.exec(stdout)?.[1],
      stdout,
    );
    assert.notEqual(portal, "4600");
    assert.notEqual(service, "8080");
    assert.match(stdout, /create +account +acme\n/);
    assert.match(
      stdout,
      /^The end user submits .* sent to http:\/\/localhost:3000\/connected\?plan=pro&session_id=\w+$/m,
    );
    assert.match(stdout, /^The same again -> 202 run_\w+, Idempotent-Replay: true$/m);
    const steps = [...stdout.matchAll(/^ +\d+\.\d\d s {2}(\w+) \/ (\w+)$/gm)].map(
      (match) => `${match[1]}/${match[2]}`,
    );
    assert.equal(steps.at(-1), "completed/completed", stdout);
    assert.ok(steps.includes("running/reading_invoices"), steps.join());
    assert.match(stdout, /^direct: +240 records$/m);
    assert.match(stdout, /^presigned_url: \d+ bytes of Brotli, the same records$/m);
    assert.match(stdout, /Of 240 records, 3 invalid:/);
    const rows = must(stdout.split("3 invalid:")[1]?.split("6. To look at")[0], stdout).trim().split("\n");
    assert.match(must(rows[0], "heading"), /^NUMBER .*WHY$/);
    assert.equal(rows.length, 4, rows.join("\n"));
    for (const row of rows.slice(1)) assert.match(row, / {2}\w+: .+/);
    assert.match(stdout, /hosted form.*http:\/\/127\.0\.0\.1:\d+\/connect\//);
    await assertNothingLeft(demo);
  });

  for (const [moment, line] of [
    ["while its data folder is made", /Creating a temporary data folder/],
    ["in the middle of the run", /^ +\d+\.\d\d s /],
  ] as const) {
    testInAll(
      "Ctrl-C when it has played all examples (cli/demo-examples)",
      `Ctrl-C ${moment} leaves no process and no file behind`,
      {},
      async () => {
        const demo = startDemo([...BY_NPM, "--once"]);
        await demo.line(line);
        pressCtrlC(demo);
        const { code, stdout } = await demo.ended;
        assert.notEqual(code, 0, "it has not done what it was to do");
        assert.doesNotMatch(stdout, /To look at/);
        await assertNothingLeft(demo);
      },
    );
  }

  testInAll(
    "Ctrl-C at other moments",
    "without --once it stays up, outlives kill -9 of its service, and ends with Ctrl-C and exit code 0",
    {},
    async () => {
      const demo = startDemo(BY_SCRIPT);
      await demo.line(/Everything stays up until Ctrl-C/);
      const [, url, pid] = must(/^Latchkey: (\S+) \(process (\d+),/m.exec(demo.stdout()), demo.stdout());
      const status = async (path: string): Promise<number> =>
        await fetch(url + path).then(
          (answer) => answer.status,
          () => 0,
        );
      assert.deepEqual([await status("/healthz"), await status("/docs")], [200, 200]);
      const app = must(
        /^Ledgerly, a customer's application: +(\S+)$/m.exec(demo.stdout())?.[1],
        demo.stdout(),
      );
      assert.match(await (await fetch(app)).text(), /<h3>Northwind Supplier Portal<\/h3>/);
      process.kill(Number(pid), "SIGKILL");
      let up = 0;
      for (let tries = 0; tries < 400 && up !== 200; tries++) {
        await sleep(50);
        up = await status("/readyz");
      }
      assert.equal(up, 200, demo.stderr());
      assert.match(demo.stderr(), /The service ended \(SIGKILL\); the demo starts it again/);
      pressCtrlC(demo);
      const { code, stderr } = await demo.ended;
      assert.equal(code, 0, stderr);
      await assertNothingLeft(demo);
    },
  );
});
