// docs/run.md for `browser` nodes: where a step stands, recordings of pages, and a window for the author.
import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { EMAIL, openPortal, PASSWORD, TOKEN } from "../browser/portal.ts";
import { openProgram } from "../browser/program.ts";
import { openTarget, type Target } from "../documents/target.ts";
import { latchkey } from "./program.ts";

let program: Awaited<ReturnType<typeof openProgram>>;
let target: Target;
let folder: string;

before(async () => {
  program = await openProgram();
  target = await openTarget();
  openPortal(target);
  folder = mkdtempSync(join(tmpdir(), "latchkey-test-run-"));
});
after(async () => {
  await target?.[Symbol.asyncDispose]();
  program?.remove();
  rmSync(folder, { recursive: true, force: true });
});

function write(name: string, text: string): string {
  const file = join(folder, name);
  writeFileSync(file, text);
  return file;
}

const run = async (arguments_: readonly string[], environment: Readonly<Record<string, string>> = {}) =>
  await latchkey(["run", ...arguments_], {
    LATCHKEY_BROWSER: program.path,
    LATCHKEY_EGRESS_ALLOW: "127.0.0.0/8,::1/128",
    ...environment,
  });

const blueprint = (steps: string, more = "") => `blueprint: page
account: acme
${more === "" ? `hosts: ["${target.url}"]\n` : more}nodes:
  - id: read
    type: browser
    retry: { attempts: 1 }
${more === "" ? "" : "    credential: portal\n"}    steps:
${steps}
  - { id: out, type: output, refKey: out, from: read }
`;

test("a step that fails is named with its file, line and column", async () => {
  target.on("GET /plain", { html: "<h1>Plain</h1><button>Next</button>" });
  const text = blueprint(`      - goto: ${target.url}/plain
      - when: { visible: { role: heading } }
        steps:
          - click: { role: button, name: Nxet, exact: true }
            timeout: 300ms
      - extract: { fields: { title: h1 } }`);
  const file = write("page.yaml", text);
  const told = await run([file]);
  assert.match(
    told.stderr,
    /^Node read: steps\[1\]\.steps\[0\] \(click button "Nxet"\): there is no button/m,
  );
  const lines = text.slice(0, text.indexOf("click:")).split("\n");
  const column = (lines.at(-1) ?? "").length + 1;
  assert.ok(told.stderr.includes(`\n  at ${file}:${lines.length}:${column}\n`), told.stderr);
});

test("pages are recorded without a login or a secret, and played without a network", async () => {
  const strategy = write(
    "portal.yaml",
    `strategy: strat_portal
account: acme
hosts: ["${target.url}"]
fields: [{ key: email, type: email }, { key: password, type: password }]
login:
  type: browser
  steps:
    - goto: /login
    - dismiss: { role: button, name: Accept all }
    - fill: { label: Email, with: "{{ $credential.email }}" }
    - fill: { label: Password, with: "{{ $credential.password }}" }
    - click: { role: button, name: Sign in }
    - expect: { visible: { role: heading, name: Dashboard } }
`,
  );
  target.on("GET /moved", { status: 302, headers: { location: "/invoices" } });
  const file = write(
    "invoices.yaml",
    blueprint(
      `      - goto: /covered
      # Under the banner that the login dismisses.
      - click: { role: button, name: Show }
      - goto: /moved
      - repeat:
          steps:
            - extract: { rows: { css: "tbody tr" }, columns: { no: .no, total: .total } }
          while: { enabled: { role: button, name: Next } }
          next:
            - click: { role: button, name: Next }`,
      "credentials: { portal: { strategy: strat_portal } }\n",
    ),
  );
  const fields = write("fields.yaml", `email: ${EMAIL}\npassword: ${PASSWORD}\n`);
  const recording = join(folder, "invoices.json");
  const live = await run([strategy, file, "--credential", `portal=${fields}`, "--record", recording]);
  assert.equal(live.code, 0, live.stderr);
  const recorded = readFileSync(recording, "utf8");
  for (const secret of [EMAIL, PASSWORD, TOKEN, "canary-cookie-778899", `"url": "${target.url}/session`])
    assert.ok(!recorded.includes(secret), secret);
  const asked = target.seen("GET /api/invoices").length;
  const [played, again] = [
    await run([strategy, file, "--replay", recording, "--check", "--json"]),
    await run([strategy, file, "--replay", recording, "--check"], { LATCHKEY_EGRESS_ALLOW: "" }),
  ];
  assert.equal(played.code, 0, played.stderr);
  assert.match(played.stdout, /"INV-33"/);
  assert.equal(again.code, 0, again.stderr);
  assert.match(again.stderr, /The results match the recording/);
  assert.equal(target.seen("GET /api/invoices").length, asked);
  const without = { ...(JSON.parse(recorded) as object), pages: undefined };
  const older = write("older.json", JSON.stringify(without));
  const refused = await run([strategy, file, "--replay", older]);
  assert.match(refused.stderr, /the recording has no pages: record it again with `--record`/);
});

test("`--headed` starts a browser with a window on the author's display, and says what is missing", async () => {
  // This program can't have a window: it looks at how it is started.
  const shown = await openProgram(
    'case "$*" in *--headless*) exit 9;; esac; [ "$DISPLAY" = ":77" ] || exit 8',
  );
  target.on("GET /shown", { html: "<h1>Shown</h1>" });
  const file = write(
    "shown.yaml",
    blueprint(`      - goto: ${target.url}/shown\n      - extract: { fields: { title: h1 } }`),
  );
  const look = async (more: readonly string[], display: string) =>
    await run([file, ...more], { LATCHKEY_BROWSER: shown.path, DISPLAY: display, WAYLAND_DISPLAY: "" });
  try {
    const done = await look(["--headed", "--slow", "1"], ":77");
    assert.equal(done.code, 0, done.stderr);
    assert.match(done.stdout, /Shown/);
    const missing = await look(["--headed"], "");
    assert.match(missing.stderr, /^There is no display for a window .* with xvfb-run\.$/m);
    assert.equal(missing.code, 2);
    assert.match((await look(["--slow"], "")).stderr, /^--slow needs --headed/m);
  } finally {
    shown.remove();
  }
});
