// docs/browser.md#when-a-step-fails: each kind of failure, as operators see it, and the wait for a browser's place.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { openProgram } from "../browser/program.ts";
import { until } from "../eventually.ts";
import { openBench, type Bench } from "./bench.ts";

const reading = (name: string, steps: string, more = "") => `blueprint: ${name}
account: acme
hosts: ["{TARGET}"]
${more}nodes:
  - id: read
    type: browser
    retry: { attempts: 1 }
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
  program = await openProgram();
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
      reading("waits", goto("/page"), "timeout: 10s\n"),
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

test(
  "a run that waits for a browser's place outlives its timeout, and its log has the wait",
  { timeout: 60_000 },
  async () => {
    const first = await bench.trigger("holds", {});
    await until("the place is taken", () => bench.target.seen("GET /held").length === 1);
    const beganMs = performance.now();
    const second = await bench.trigger("waits", {});
    await until("its timeout is over", () => performance.now() - beganMs > 10_500);
    release();
    const run = await bench.ended(second.body.id);
    assert.equal(run.status.status, "completed", run.detail ?? "");
    await bench.ended(first.body.id);
    const [step] = await bench.installation.database.db.query<{ log: Buffer }>(
      "select log from run_step where run_id = $1",
      [run.id],
    );
    assert.match(step?.log.toString() ?? "", /\{"message":"waited for a browser","waitedMs":\d{4,5}\}/);
  },
);
