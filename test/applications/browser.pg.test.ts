// Applications that nobody here wrote and whose sign-in needs script, logged into and read by their pages (docs/browser.md).
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { chromium } from "playwright-core";
import { openProgram } from "../browser/program.ts";
import { dataOf, openBench, type Bench } from "../documents/bench.ts";
import { FLOWS, PACKAGES, startFlowEditor, startRegistry } from "./browser-apps.ts";
import { watchBrowsers, type WatchedBrowsers } from "./browser-times.ts";
import { connectApplication, connected, PASSWORD, strategy, USER } from "./stage.ts";

const OPEN_MS_MAX = 5_000;
const BARE_TIMES_MAX = 2.5;

let browsers: WatchedBrowsers;
let program: Awaited<ReturnType<typeof openProgram>>;
let bench: Bench;
before(async () => {
  browsers = watchBrowsers();
  program = await openProgram(browsers.note);
  bench = await openBench([], undefined, { LATCHKEY_BROWSER: program.path });
});
after(async () => {
  await bench?.[Symbol.asyncDispose]();
  program?.remove();
  browsers?.end();
});

const REGISTRY_LOGIN = `
  type: browser
  steps:
    - goto: /
    - click: { role: button, name: Login }
    - fill: { label: Username, with: "{{ $credential.user }}" }
    - fill: { label: Password, with: "{{ $credential.pass }}" }
    - click: { role: button, name: Login }
    - expect: { visible: { test_id: logInDialogIcon }, rejected: { text: Invalid username or password } }
  session: { headers: { Authorization: "Bearer {{ $storage.local.token }}" } }
  check: { request: { url: /-/verdaccio/data/packages }, expect: { json: "$count($) > 0" } }`;

/** The same login as a script would do it. */
async function logInBarely(executablePath: string, url: string): Promise<void> {
  // As root, the sandbox needs another user.
  const chromiumSandbox = process.getuid?.() !== 0;
  const browser = await chromium.launch({ executablePath, chromiumSandbox, env: {} });
  try {
    const page = await browser.newPage();
    await page.goto(url);
    await page.getByRole("button", { name: "Login" }).click();
    await page.getByLabel("Username").fill(USER);
    await page.getByLabel("Password").fill(PASSWORD);
    await page.getByRole("button", { name: "Login" }).click();
    await page.getByTestId("logInDialogIcon").waitFor();
  } finally {
    await browser.close();
  }
}

test("Verdaccio: its pages are read, and 10,000 records by requests while a browser was open for less than 5 s", async () => {
  await using registry = await startRegistry();
  await bench.apply(
    strategy("registry", registry.url, REGISTRY_LOGIN),
    connected(
      "registry-list",
      "registry",
      `- id: it
  type: browser
  credential: app
  steps:
    - goto: /
    - extract:
        rows: { css: "[role=grid] ul" }
        columns: { name: "a[href*='/web/detail/']", page: "a[href*='/web/detail/']@href", description: p }`,
    ),
    connected(
      "registry-versions",
      "registry",
      `- id: it
  type: browser
  credential: app
  steps:
    - goto: /
    - click: { role: link, name: parcels }
    - click: { role: tab, name: Versions }
    - extract: { rows: { test_id: version-list-link }, columns: { version: ":scope" } }`,
    ),
    connected(
      "registry-records",
      "registry",
      "- { id: it, type: http, credential: app, request: { url: /ledger }, records: versions.* }",
    ),
  );
  const run = await connectApplication(
    bench,
    "registry",
    /login steps\[5\] \(expect .* visible\): the target rejected the credential/,
  );
  browsers.forget();
  const records = await run("registry-records");
  assert.equal(records.status.status, "completed", records.detail ?? "");
  assert.equal(records.results["out"]?.totalRecords, PACKAGES.ledger);
  const [openMs = Infinity, ...others] = await browsers.times();
  assert.deepEqual(others, [], "one browser, for the login alone");
  browsers.forget();
  await logInBarely(program.path, registry.url);
  const [bareMs = Infinity] = await browsers.times();
  console.log(`the browser of the login was open for ${openMs} ms, that of a bare script for ${bareMs} ms`);
  // On a machine that does much else, a bare script of the same minute says what five seconds are.
  assert.ok(openMs < Math.max(OPEN_MS_MAX, bareMs * BARE_TIMES_MAX), `${openMs} and ${bareMs} ms`);
  assert.deepEqual(
    dataOf(await run("registry-list")),
    Object.keys(PACKAGES).map((name) => ({
      name,
      page: `/-/web/detail/${name}`,
      description: `The ${name} of today`,
    })),
  );
  assert.deepEqual(dataOf(await run("registry-versions")).at(-1), { version: "1.0.0" });
});

test("Node-RED: its flows are read from the editor, and by requests with the login's token", async () => {
  await using editor = await startFlowEditor();
  await bench.apply(
    strategy(
      "flows",
      editor.url,
      `
  type: browser
  steps:
    - goto: /
    - fill: { label: Username, with: "{{ $credential.user }}" }
    - fill: { label: Password, with: "{{ $credential.pass }}" }
    - click: { role: button, name: Login }
    - expect: { visible: { css: "#red-ui-workspace-tabs" }, rejected: { text: Login failed } }
  session: { headers: { Authorization: "Bearer {{ $storage.local.\`auth-tokens\`.access_token }}" } }
  check: { request: { url: /flows } }`,
    ),
    connected(
      "flows-list",
      "flows",
      `- id: it
  type: browser
  credential: app
  steps:
    - goto: /
    - extract: { rows: { css: "#red-ui-workspace-tabs li" }, columns: { label: ":scope" } }`,
    ),
    connected(
      "flows-records",
      "flows",
      "- { id: it, type: http, credential: app, request: { url: /flows }, records: \"$[type = 'tab']\" }",
    ),
  );
  const run = await connectApplication(bench, "flows", /the target rejected the credential/);
  assert.deepEqual(
    dataOf(await run("flows-list")).map(({ label }) => label),
    FLOWS,
  );
  assert.deepEqual(
    dataOf(await run("flows-records")).map(({ label }) => label),
    FLOWS,
  );
});
