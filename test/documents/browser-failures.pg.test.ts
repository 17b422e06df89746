// docs/browser.md#when-a-step-fails: each kind of failure, as operators see it, and the wait for a browser's place.
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { readdirSync, readFileSync, renameSync } from "node:fs";
import { after, before, test } from "node:test";
import { openProgram } from "../browser/program.ts";
import { until } from "../eventually.ts";
import { openBench, type Bench } from "./bench.ts";

/** In the environment of this file's browsers, and of no other's. */
const MARK = `LATCHKEY_TEST_MARK=${randomUUID()}`;

const reading = (name: string, steps: string, more = "", attempts = 1) => `blueprint: ${name}
account: acme
hosts: ["{TARGET}"]
${more}nodes:
  - id: read
    type: browser
    retry: { attempts: ${attempts}, initial: 1ms }
    steps:
${steps}
      - extract: { fields: { title: h1 } }
  - { id: out, type: output, refKey: out, from: read }
`;
const goto = (path: string, more = "") => `      - goto: "{TARGET}${path}"${more}`;

const PASSKEY = `strategy: strat_passkey
account: acme
hosts: ["{TARGET}"]
fields: [{ key: email, type: email }, { key: password, type: password }]
login:
  type: browser
  steps:
    - goto: /passkey
    - fill: { label: Password, with: "{{ $credential.password }}" }
      timeout: 300ms
`;
const BY_PASSKEY = `blueprint: passkey
account: acme
credentials: { portal: { strategy: strat_passkey } }
nodes:
  - { id: read, type: http, credential: portal, request: { url: /api }, records: items }
  - { id: out, type: output, refKey: out, from: read }
`;

let program: Awaited<ReturnType<typeof openProgram>>;
let bench: Bench;
let release = (): void => {};
const held = new Promise<void>((resolve) => (release = resolve));

before(async () => {
  program = await openProgram(`export ${MARK}`);
  bench = await openBench(
    [
      PASSKEY,
      BY_PASSKEY,
      reading(
        "captcha",
        `${goto("/robot")}\n      - click: { role: button, name: Next }\n        timeout: 300ms`,
      ),
      reading("blocked", goto("/away")),
      reading("timeout", goto("/hangs", "\n        timeout: 300ms")),
      reading("holds", goto("/held", "\n        timeout: 1m")),
      reading("waits", goto("/page"), "timeout: 1m\n"),
      reading("crashes", goto("/crash")),
      reading("survives", goto("/crash"), "", 2),
    ],
    undefined,
    { LATCHKEY_BROWSER: program.path, LATCHKEY_BROWSERS: "1" },
  );
  const { target } = bench;
  target.on("GET /passkey", { html: "<h1>Welcome</h1><button>Sign in with a passkey</button>" });
  target.on("GET /robot", { html: '<div class="h-captcha" style="width:9em;height:3em">…</div>' });
  target.on("GET /away", { status: 302, headers: { location: "http://elsewhere.test:8099/" } });
  target.on("GET /hangs", { html: "late", delayMs: 3_000 });
  target.on("GET /page", { html: "<h1>Page</h1>" });
  target.on("GET /held", async () => {
    await held;
    return { html: "<h1>Held</h1>" };
  });
});
after(async () => {
  release();
  await bench?.[Symbol.asyncDispose]();
  program?.remove();
});

test("a captcha, a passkey, an egress rule and a page that hangs are told apart", async () => {
  const credential_id = await bench.connect("strat_passkey", {
    email: "a@example.com",
    password: "canary-pass-1",
  });
  const kinds = [];
  for (const [name, body] of [
    ["captcha", {}],
    ["passkey", { credential_id }],
    ["blocked", {}],
    ["timeout", {}],
  ] as const) {
    const run = await bench.run(name, body);
    kinds.push(`${name}: ${run.kind}`);
    assert.equal(run.status.error.code, "execution_failed");
  }
  assert.deepEqual(kinds, [
    "captcha: captcha",
    "passkey: passkey_only",
    "blocked: blocked",
    "timeout: timeout",
  ]);
});

/** What operators see of why it waits. */
async function waitOf(id: string): Promise<string | null> {
  const shown = await bench.installation.command("runs", "show", id, "--json");
  return (JSON.parse(shown.stdout) as { readonly browser_wait: string | null }).browser_wait;
}

test("a run that waits for a browser holds no worker, outlives its timeout, and says why it waits", async () => {
  const first = await bench.trigger("holds", {});
  await until("the place is taken", () => bench.target.seen("GET /held").length === 1);
  const second = await bench.trigger("waits", {});
  await until("it queues", async () => (await waitOf(second.body.id)) === "taken");
  const { db } = bench.installation.database;
  const [queued] = await db.query("select lease_owner, admitted_at, line from run where id = $1", [
    second.body.id,
  ]);
  assert.deepEqual(queued, { lease_owner: null, admitted_at: null, line: "browser" });
  // As if it had waited for an hour.
  await db.query("update run set parked_at = parked_at - interval '1 hour' where id = $1", [second.body.id]);
  release();
  assert.equal((await bench.ended(first.body.id)).status.status, "completed");
  const run = await bench.ended(second.body.id);
  assert.equal(run.status.status, "completed", run.detail ?? "");
});

test("without a browser a run waits until its worker has one, and the run and doctor say so", async () => {
  renameSync(program.path, `${program.path}.away`);
  const { body } = await bench.trigger("waits", {});
  await until("it queues", async () => (await waitOf(body.id)) === "missing");
  const shown = await bench.installation.command("runs", "show", body.id);
  assert.match(shown.stdout, /waits for +a browser, and no worker has one: install Chromium/);
  const doctor = await bench.installation.command("doctor");
  assert.match(doctor.stdout, /one run waits for a browser, and no worker has one\. Install Chromium/);
  renameSync(`${program.path}.away`, program.path);
  const run = await bench.ended(body.id);
  assert.equal(run.status.status, "completed", run.detail ?? "");
});

test("a browser that ends by itself is a failure of its own kind, and is tried again", async () => {
  let kills = 0;
  bench.target.on("GET /crash", async (_request, before) => {
    if (before < 2) kills += killBrowsers();
    return { html: "<h1>Alive</h1>" };
  });
  const failed = await bench.run("crashes");
  assert.deepEqual([failed.status.status, failed.kind], ["failed", "browser_crashed"]);
  assert.match(failed.detail ?? "", /^Node read: steps\[0\] \(goto .*\): the browser ended by itself/);
  const again = await bench.run("survives");
  assert.equal(again.status.status, "completed", again.detail ?? "");
  assert.ok(kills >= 2);
});

/** Kills the browsers of this file's program, from outside; returns how many processes those were. */
function killBrowsers(): number {
  const pids = readdirSync("/proc").filter((name) => {
    try {
      return readFileSync(`/proc/${name}/environ`, "latin1").includes(MARK);
    } catch {
      return false;
    }
  });
  for (const pid of pids) {
    try {
      process.kill(Number(pid), "SIGKILL");
    } catch {
      // It went with another one.
    }
  }
  return pids.length;
}
