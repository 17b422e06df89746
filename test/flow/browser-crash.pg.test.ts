// docs/browser.md#writes: wherever the worker dies in a browser's run, a read is repeated and a write is not; no browser stays.
import assert from "node:assert/strict";
import { chmodSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, afterEach, before, test } from "node:test";
import { pathToFileURL } from "node:url";
import { watchRun } from "#db/runs/live-pictures.ts";
import type { Failpoint } from "#lib/failpoint.ts";
import { openProgram } from "../browser/program.ts";
import { eventually, until } from "../eventually.ts";
import { connect, openCaller } from "../caller.ts";
import { openTarget, type Target } from "../documents/target.ts";
import { assertInvariants } from "../invariants.ts";
import { untilDead } from "../processes.ts";
import { install } from "../service.ts";
import { inTier, testInAll } from "../tiers.ts";

const documents = (target: string) => [
  `strategy: strat_portal
account: acme
hosts: ["${target}"]
fields: [{ key: password, type: password }]
login:
  type: browser
  steps:
    - goto: /login
    - fill: { label: Password, with: "{{ $credential.password }}" }
    - click: { role: button, name: Sign in }
    - expect: { visible: { text: Welcome } }`,
  `blueprint: logs-in
account: acme
credentials: { portal: { strategy: strat_portal } }
nodes:
  - { id: read, type: http, credential: portal, request: { url: /items }, records: items }
  - { id: out, type: output, refKey: out, from: read }`,
  `blueprint: reads
account: acme
hosts: ["${target}"]
nodes:
  - id: read
    type: browser
    steps:
      - goto: ${target}/page
      - extract: { fields: { title: h1 } }
  - { id: out, type: output, refKey: out, from: read }`,
  `blueprint: stays
account: acme
hosts: ["${target}"]
nodes:
  - id: read
    type: browser
    steps:
      - goto: ${target}/page
      - wait: { for: 10s }
      - extract: { fields: { title: h1 } }
  - { id: out, type: output, refKey: out, from: read }`,
  `blueprint: writes
account: acme
hosts: ["${target}"]
nodes:
  - id: sent
    type: browser
    effect: write
    steps:
      - goto: ${target}/page
      - commit: true
      - click: { role: button, name: Send }
      - expect: { visible: { text: Thank you } }
  - { id: out, type: output, refKey: out, from: sent }`,
];

const PAGE = `<!doctype html><h1>Page</h1><button>Send</button><p></p><script>
  document.querySelector("button").onclick = async () => {
    await fetch("/orders", { method: "POST" });
    document.querySelector("p").textContent = "Thank you";
  };
</script>`;

const LOGIN = `<!doctype html><label>Password <input type=password></label><button>Sign in</button><p></p><script>
  document.querySelector("button").onclick = async () => {
    await fetch("/session", { method: "POST", body: document.querySelector("input").value });
    document.querySelector("p").textContent = "Welcome";
  };
</script>`;
const PASSWORD = "canary-password-91ab";

let program: Awaited<ReturnType<typeof openProgram>>;
let target: Target;
let installation: Awaited<ReturnType<typeof install>>;
let key: string;
let folder: string;
let credential_id: string;
let orders = 0;

before(async () => {
  program = await openProgram();
  target = await openTarget();
  folder = mkdtempSync(join(tmpdir(), "latchkey-test-crash-"));
  chmodSync(folder, 0o755);
  installation = await install({ LATCHKEY_BROWSER: program.path, TMPDIR: folder });
  await installation.apply("account: acme\nname: Acme", ...documents(target.url));
  key = await installation.createKey("acme");
  target.on("GET /page", { html: PAGE });
  target.on("GET /login", { html: LOGIN });
  target.on("POST /session", ({ body }) =>
    body === PASSWORD
      ? { text: "", headers: { "set-cookie": "sid=canary-cookie-3344; Path=/" } }
      : { status: 401 },
  );
  target.on("GET /items", ({ headers }) =>
    headers.cookie === "sid=canary-cookie-3344" ? { json: { items: [{ id: 1 }] } } : { status: 401 },
  );
  const service = await installation.serveProcess({}, ["api"]);
  credential_id = await connect(openCaller(service.url, key), "strat_portal", { password: PASSWORD });
  await service.end();
  target.on("POST /orders", () => {
    orders += 1;
    return { json: {} };
  });
});
afterEach(async () => await assertInvariants(installation));
after(async () => {
  await installation?.[Symbol.asyncDispose]();
  await target?.[Symbol.asyncDispose]();
  program?.remove();
  rmSync(folder, { recursive: true, force: true });
});

/** Processes of this installation's browsers: their folders are in its own. */
function browsers(): readonly string[] {
  return readdirSync("/proc").filter((pid) => {
    try {
      return /^\d+$/.test(pid) && readFileSync(`/proc/${pid}/cmdline`, "utf8").includes(folder);
    } catch {
      return false;
    }
  });
}

type Case = readonly [
  point: Failpoint,
  hit: number,
  what: "reads" | "writes" | "logs-in",
  orders: 0 | 1,
  isAsked: boolean,
];
/** The write's steps: 1 goto, 2 commit, 3 click, 4 expect. */
const CASES: readonly Case[] = [
  ["browser.after_open", 1, "reads", 0, false],
  ["browser.before_step", 1, "reads", 0, false],
  ["browser.before_step", 2, "reads", 0, false],
  ["browser.after_steps", 1, "reads", 0, false],
  ["step.before_finish", 1, "reads", 0, false],
  ["step.after_finish", 1, "reads", 0, false],
  // In the login: each step of it, and between it and the nodes.
  ["browser.after_open", 1, "logs-in", 0, false],
  ["browser.before_step", 2, "logs-in", 0, false],
  ["browser.before_step", 3, "logs-in", 0, false],
  ["browser.before_step", 4, "logs-in", 0, false],
  ["browser.after_steps", 1, "logs-in", 0, false],
  ["run.after_login", 1, "logs-in", 0, false],
  ["browser.after_open", 1, "writes", 1, false],
  ["browser.before_step", 2, "writes", 1, false],
  ["write.before_intent", 1, "writes", 1, false],
  ["write.after_intent", 1, "writes", 0, true],
  ["browser.before_step", 3, "writes", 0, true],
  ["browser.before_step", 4, "writes", 1, true],
  ["browser.after_steps", 1, "writes", 1, true],
  ["write.after_outcome", 1, "writes", 1, false],
  ["step.before_finish", 1, "writes", 1, false],
];
const isRepresentative = ([point, hit, what]: Case): boolean =>
  what === "writes" && point === "browser.before_step" && hit === 4;

for (const [point, hit, what, expected, isAsked] of inTier(CASES, isRepresentative)) {
  test(`killed at ${point} (${hit}) a Blueprint that ${what.replace("-", " ")} does so once, and leaves no browser`, async () => {
    orders = 0;
    const dying = await installation.serveProcess({ LATCHKEY_FAILPOINTS: `${point}=kill:${hit}` });
    const { body } = await openCaller(dying.url, key).post(
      `/blueprints/${what}/trigger`,
      what === "logs-in" ? { credential_id } : {},
    );
    await untilDead(dying);
    await until("its browser is gone", () => browsers().length === 0);
    const service = await installation.serveProcess();
    const caller = openCaller(service.url, key);
    if (isAsked) {
      await eventually("it waits for the operator", async () => {
        const status = await caller.get(`/blueprint-runs/${body.id}/status`);
        return status.body.progress_step === "awaiting_review" ? true : undefined;
      });
      // The click was on its way when the worker died: the target may have it or not, but nobody clicks again.
      assert.ok(orders <= expected, `${orders} orders`);
      const decided = await installation.command("reviews", "write", body.id, "sent", "0", "--happened");
      assert.equal(decided.code, 0, decided.stderr);
    }
    const { body: ended } = await caller.waitForRun(body.id, 30_000);
    assert.equal(ended.status, "completed");
    if (!isAsked) assert.equal(orders, expected);
    await service.end("SIGKILL");
    await until("nothing of its browsers is left", () => browsers().length === 0);
  });
}

testInAll(
  "a worker that is killed with a browser open",
  "a worker that stands still while others do its run writes nothing, and ends its browser when it goes on",
  {},
  async () => {
    for (const [point, what, expected, isAsked] of [
      ["browser.before_step=freeze:2", "reads", 0, false],
      // Frozen before the click, after the intent: nobody knows whether it was sent, so a person is asked.
      ["browser.before_step=freeze:3", "writes", 0, true],
    ] as const) {
      orders = 0;
      const zombie = await installation.serveProcess({ ...FAST, LATCHKEY_FAILPOINTS: point });
      const { body } = await openCaller(zombie.url, key).post(`/blueprints/${what}/trigger`, {});
      await until("it stands still", () => isFrozen(zombie.child.pid));
      const other = await installation.serveProcess(FAST);
      const caller = openCaller(other.url, key);
      if (isAsked)
        await eventually("it waits for the operator", async () => {
          const status = await caller.get(`/blueprint-runs/${body.id}/status`);
          return status.body.progress_step === "awaiting_review" ? true : undefined;
        });
      else assert.equal((await caller.waitForRun(body.id, 60_000)).body.status, "completed");
      zombie.child.kill("SIGCONT");
      await until("its browser is gone", () => browsers().length === 0);
      assert.equal(orders, expected);
      if (isAsked) {
        const decided = await installation.command("reviews", "write", body.id, "sent", "0", "--happened");
        assert.equal(decided.code, 0, decided.stderr);
        assert.equal((await caller.waitForRun(body.id, 60_000)).body.status, "completed");
      }
      for (const each of [zombie, other]) await each.end("SIGKILL");
    }
  },
);

testInAll(
  "the rows of a worker that is taken over (runs/live-pictures)",
  "the picture of a page whose worker is killed while somebody watches is gone when the run is taken over",
  {},
  async () => {
    const { db } = installation.database;
    const dying = await installation.serveProcess();
    const { body } = await openCaller(dying.url, key).post("/blueprints/stays/trigger", {});
    const countPictures = async (): Promise<number> =>
      (await db.query("select 1 from live_picture where png is not null")).length;
    await until("a picture is there", async () => {
      await watchRun(db, body.id, 5_000);
      return (await countPictures()) === 1;
    });
    await dying.end("SIGKILL");
    assert.equal(await countPictures(), 1);
    const other = await installation.serveProcess();
    await until("it is gone", async () => (await countPictures()) === 0);
    assert.equal((await openCaller(other.url, key).waitForRun(body.id, 60_000)).body.status, "completed");
    assert.deepEqual(await db.query("select 1 from live_picture"), []);
    await other.end("SIGKILL");
  },
);

/** A worker is given up after a tenth of the product's time. */
const FAST = {
  NODE_OPTIONS: `--import=${pathToFileURL(join(import.meta.dirname, "fast-liveness.mjs")).href}`,
};

const isFrozen = (pid: number | undefined): boolean =>
  / T /.test(readFileSync(`/proc/${pid}/stat`, "utf8").replace(/^.*\)/, ""));
