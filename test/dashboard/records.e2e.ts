// Records in the dashboard, in a real Chromium at a real service: however many, however wide, and text whatever somebody else has written.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, before, test } from "node:test";
import type { Page } from "playwright-core";
import { submitHostedForm } from "../caller.ts";
import { inTier, testInAll, tier } from "../tiers.ts";
import { openDashboardStage, type DashboardStage } from "./dashboard-stage.ts";

const RECORDS = [
  { number: "RE-1", supplier: "Northwind", total: 12.5 },
  { number: "RE-2", supplier: "", total: 3 },
];

let stage: DashboardStage;
let url: string;

before(async () => {
  stage = await openDashboardStage();
  url = stage.operators.service.url;
});

after(async () => await stage?.[Symbol.asyncDispose]());

test("a reviewer edits a record, leaves one out, approves by keyboard, and sees what came of it", async () => {
  const run = await stage.trigger(
    "supplier-invoices",
    [...RECORDS, { number: "RE-3", supplier: "", total: -4 }],
    {
      run_name: "To be reviewed",
    },
  );
  const review = await stage.waitForReview(run);
  const reviewer = await stage.operators.operator("reviewer");
  const page = await (await stage.newContext()).newPage();
  const signIn = async (): Promise<void> => {
    await page.getByLabel("Email").fill(reviewer.email);
    await page.getByLabel("Password", { exact: true }).fill(reviewer.password);
    await page.getByRole("button", { name: "Sign in" }).click();
  };
  await page.goto(`${url}/dashboard/reviews/${review}`);
  await signIn();
  const dialog = page.getByRole("dialog");
  // Errors that nobody has looked at are counted, and Enter approves nothing.
  await page.getByText("2 records with errors").waitFor();
  await page.getByRole("button", { name: "Approve" }).press("Enter");
  await dialog.getByText("2 records still have errors").waitFor();
  await dialog.getByRole("button", { name: "Exclude 2 and approve" }).waitFor();
  await dialog.getByRole("button", { name: "Approve with errors" }).waitFor();
  await page.waitForFunction("document.activeElement.textContent === 'Cancel'");
  await page.keyboard.press("Enter");
  await dialog.waitFor({ state: "detached" });
  await page.getByLabel("supplier of record 2").fill("Southgate");
  await page.getByLabel("total of record 2").fill("three");
  await page.getByText("Enter a number.").waitFor();
  assert.ok(await page.getByRole("button", { name: "Approve" }).isDisabled());
  await page.getByLabel("total of record 2").fill("7");
  await page.getByRole("button", { name: "Exclude record 3" }).press("Enter");
  await page.getByText("1 edited, 1 excluded").waitFor();
  // A look at another page loses nothing of it; closing the tab there would be asked about.
  await page.getByRole("link", { name: "Runs", exact: true }).click();
  await page.getByRole("heading", { name: "Runs", level: 1 }).waitFor();
  const isAsked = "!window.dispatchEvent(new Event('beforeunload', { cancelable: true }))";
  assert.equal(await page.evaluate(isAsked), true);
  await page.goBack();
  await page.getByText("1 edited, 1 excluded").waitFor();
  assert.equal(await page.getByLabel("supplier of record 2").inputValue(), "Southgate");
  // Nor does a reload, or a session that ends before the approval.
  await page.reload();
  await page.getByText("1 edited, 1 excluded").waitFor();
  await page.getByRole("button", { name: "Approve" }).click();
  await page.context().clearCookies();
  // The page may ask for the sign-in before the click: its own requests notice the end as well.
  const approving = dialog.getByRole("button", { name: "Approve" }).click();
  await Promise.race([approving, page.getByLabel("Email").waitFor()]);
  approving.catch(() => {});
  await signIn();
  await page.getByText("1 edited, 1 excluded").waitFor();
  await page.getByRole("button", { name: "Approve" }).press("Enter");
  await dialog.getByLabel("Reason").fill("The supplier was missing");
  await page.keyboard.press("Tab");
  await page.keyboard.press("Tab");
  await page.keyboard.press("Enter");
  await page.getByText("Decided by").waitFor();
  await page.getByText("The supplier was missing").waitFor();
  assert.equal(await page.evaluate(isAsked), false, "what is decided is kept nowhere");
  await page.getByRole("main").getByRole("link", { name: "Open the run" }).click();
  const records = page.getByRole("region", { name: "Records" });
  await records.getByRole("cell", { name: "Southgate" }).waitFor();
  assert.equal(await records.getByRole("row").count(), 3);
  const [download] = await Promise.all([
    page.waitForEvent("download"),
    page.getByRole("link", { name: "CSV" }).click(),
  ]);
  assert.match(download.suggestedFilename(), /^run_\w+-invoices\.csv$/);
  assert.match(readFileSync(await download.path(), "utf8"), /RE-2"?,"?Southgate"?,7,true/);

  // Somebody else is first: what was typed is not lost without a word.
  const other = await stage.waitForReview(await stage.trigger("supplier-invoices", RECORDS));
  await page.goto(`${url}/dashboard/reviews/${other}`);
  await page.getByLabel("supplier of record 2").fill("Eastside");
  await (await stage.operators.holding(reviewer)).send("POST", `/reviews/${other}/approve`, {});
  const unused = page.getByRole("alert").filter({ hasText: "Your 1 edit was not used" });
  await unused.getByText("Eastside").waitFor();
  await unused.getByRole("button", { name: "Discard" }).click();
  await unused.waitFor({ state: "detached" });
  await page.context().close();
});

for (const total of inTier([300, 2_000, 100_000], (each) => each === 300))
  test(`a review of ${total} records finds all with errors, and only those in sight are there`, async (context) => {
    const many = new FormData();
    const rows = Array.from({ length: total }, (_, n) => ({
      number: `RE-${n}`,
      supplier: n % 10 === 9 ? "" : "Northwind",
      total: n + 1,
    }));
    many.set("data", new File([JSON.stringify(rows)], "many.json", { type: "application/json" }));
    const { body } = await stage.caller.post("/blueprints/supplier-invoices/trigger", many);
    const review = await stage.waitForReview(body.id);
    const page = await stage.openPage("reviewer", `/reviews/${review}`);
    const records = page.getByRole("region", { name: "Records" });
    // What there is to do comes first.
    await records.getByLabel("supplier of record 10", { exact: true }).waitFor();
    assert.equal(await records.getByLabel("supplier of record 1", { exact: true }).count(), 0);
    await records.focus();
    await page.keyboard.press("End");
    const last = records.getByLabel(`supplier of record ${total}`, { exact: true });
    await last.waitFor();
    assert.ok((await records.getByRole("row").count()) < 60);
    await last.focus();
    await page.evaluate(WATCH_KEYS);
    await page.keyboard.type("Southgate");
    const times = (await page.evaluate<readonly number[]>("globalThis.keyTimes")).toSorted((a, b) => a - b);
    // Presses that are shown within a frame are not among them.
    const median = times.length < "Southgate".length / 2 ? 0 : (times[Math.floor(times.length / 2)] ?? 0);
    if (tier === "all") assert.ok(median <= 50, times.join());
    context.diagnostic(`${total} records: key presses longer than a frame took ${times.join(", ")} ms`);
    await page.getByText(`${total / 10 - 1} records with errors, 1 edited`).waitFor();
    // It is still there when its row is not.
    await page.getByText(`All ${total}`).click();
    await records.getByLabel("supplier of record 1", { exact: true }).waitFor();
    await records.focus();
    await page.keyboard.press("End");
    await last.waitFor();
    assert.equal(await last.inputValue(), "Southgate");
    await page.context().close();
  });

/** From the key to the picture that shows it, of the presses that take longer than a frame. */
const WATCH_KEYS = `globalThis.keyTimes = []; new PerformanceObserver((list) =>
  keyTimes.push(...list.getEntries().filter(({ name }) => name === "keydown").map(({ duration }) => duration))).observe({ type: "event", durationThreshold: 16 })`;

test("results of many columns are reached column by column and record by record; a failed node is named", async () => {
  const wide = Object.fromEntries(Array.from({ length: 66 }, (_, n) => [`key-${n}`, `value-${n}`]));
  const run = await stage.trigger("plain-list", [{ supplier: "", total: 1, ...wide }]);
  await stage.caller.waitForRun(run, 100_000);
  const page = await stage.openPage("reviewer", `/runs/${run}`);
  await page.getByText("Columns 1–50 of 68").waitFor();
  assert.equal(await page.getByRole("columnheader", { name: "key-65" }).count(), 0);
  await page.getByRole("button", { name: "Next columns" }).click();
  await page.getByText("Columns 51–68 of 68").waitFor();
  await page.getByRole("cell", { name: "value-65" }).waitFor();
  // Whatever is in sight, the row says what is wrong with it.
  await page.getByRole("cell", { name: "supplier: No supplier" }).waitFor();
  await page.getByRole("button", { name: "Show record 1" }).click();
  const whole = page.getByRole("dialog", { name: "Record 1" });
  assert.match(await whole.innerText(), /No supplier[\s\S]*"key-0": "value-0"[\s\S]*"key-65": "value-65"/);
  const failed = await stage.trigger("plain-list", "no JSON");
  await stage.caller.waitForRun(failed, 100_000);
  await page.goto(`${url}/dashboard/runs/${failed}`);
  const steps = page.getByRole("region", { name: "Steps" });
  await steps.getByRole("button", { name: /rows.*Failed/s }).waitFor();
  assert.equal(await steps.getByText(/No step has/).count(), 0);
  // The overview leads to all that failed alike.
  await page.getByRole("link", { name: "Overview" }).click();
  await page
    .getByRole("row", { name: /plain-list/ })
    .getByRole("link", { name: "Invalid data" })
    .first()
    .click();
  await page.locator(`a[href$="/runs/${failed}"]`).waitFor();
  assert.match(page.url(), /\/runs\?status=failed&account=acme&error=.*&blueprint=plain-list&last=24h$/);
  await page.context().close();
});

/** The figures of docs/dashboard.md are in the test's diagnostic. */
const TABLE_RECORDS = 100_000;
/** Scrolls from the top to the end in steps, and gives what that took; as text, because it is the page that does it. */
const SCROLL_ALL = `(async () => {
  const box = document.querySelector('section[aria-label="Records"]');
  const long = [];
  const watch = new PerformanceObserver((list) => long.push(...list.getEntries().map(({ duration }) => duration)));
  watch.observe({ type: "longtask" });
  const frames = [];
  let nodes = 0;
  let last = performance.now();
  for (let step = 0; step <= 400; step++) {
    box.scrollTop = (box.scrollHeight * step) / 400;
    await new Promise(requestAnimationFrame);
    frames.push(performance.now() - last);
    last = performance.now();
    nodes = Math.max(nodes, document.querySelectorAll("#root *").length);
  }
  watch.disconnect();
  frames.sort((a, b) => a - b);
  return { p50: frames[200], p95: frames[380], long: long.length, longest: Math.max(0, ...long), nodes,
    heapMB: performance.memory.usedJSHeapSize / 1e6 };
})()`;

testInAll(
  "a review of 300 records, of which only those in sight are there",
  "of a table of many records only those in sight are there, and any place is reached",
  { timeout: 400_000 },
  async (context) => {
    const many = new FormData();
    const rows = Array.from({ length: TABLE_RECORDS }, (_, n) => ({
      number: `RE-${n}`,
      supplier: "Northwind",
      total: n + 1,
    }));
    many.set("data", new File([JSON.stringify(rows)], "many.json", { type: "application/json" }));
    many.set("run_name", "Many");
    const { text, body } = await stage.caller.post("/blueprints/plain-list/trigger", many);
    assert.ok(body.id, text);
    await stage.caller.waitForRun(body.id, 100_000);
    const own = await stage.openPage("reviewer", `/runs/${body.id}`);
    const records = own.getByRole("region", { name: "Records" });
    await records.getByRole("cell", { name: "RE-0", exact: true }).waitFor();
    const before = Number(await own.evaluate(`document.querySelectorAll("#root *").length`));
    const { p50, p95, long, longest, nodes, heapMB } = await own.evaluate<Record<string, number>>(SCROLL_ALL);
    context.diagnostic(
      `${TABLE_RECORDS} records: a frame p50 ${p50?.toFixed(1)} ms, p95 ${p95?.toFixed(1)} ms; ${long} long tasks, the longest ${longest?.toFixed(0)} ms; at most ${nodes} nodes (${before} before); heap ${heapMB?.toFixed(0)} MB`,
    );
    // As many as fit and a few beside, wherever somebody is.
    assert.ok((nodes ?? Infinity) < before + 300, `${nodes} nodes, ${before} before`);
    // As in a ledger.
    const alignments = await own.evaluate(
      `["number", "total"].map((name) => getComputedStyle(document.querySelector(\`th[title="\${name}"]\`)).textAlign)`,
    );
    assert.deepEqual(alignments, ["left", "right"]);
    await records.focus();
    await own.keyboard.press("End");
    await records.getByRole("cell", { name: `RE-${TABLE_RECORDS - 1}`, exact: true }).waitFor();
    assert.ok((await records.getByRole("row").count()) < 60);
    await own.context().close();
  },
);

/** Each as a name, metadata, a value and a key of a record: what is typed here comes back as text, or not at all. */
const HOSTILE = [
  "<img src=x onerror=hostile()>",
  "<script>hostile()</script>",
  `"><svg onload=hostile()>`,
  "javascript:hostile()",
  "{{constructor.constructor('hostile()')()}}",
  "</title><script>hostile()</script>",
  "<a href='https://evil.example/'>click</a>",
  "\u202Egnp.exe",
];

test("what comes from outside is text, wherever it is shown", async () => {
  const run = await stage.trigger(
    "supplier-invoices",
    HOSTILE.map((text) => ({ number: text, supplier: "", total: -1, [text]: text })),
    { run_name: HOSTILE.join(" ").slice(0, 250), note: HOSTILE.join(" "), [HOSTILE[0] ?? ""]: "x" },
  );
  const review = await stage.waitForReview(run);
  const page = await stage.openPage("admin", `/runs/${run}`);
  // Text that reaches it has broken out of its place.
  await page.evaluate("window.hostile = () => { document.title = 'hostile'; window.isBroken = true; }");
  await page
    .getByText(HOSTILE[1] ?? "")
    .first()
    .waitFor();
  for (const path of ["/runs", `/runs/${run}`, `/reviews/${review}`, "/reviews", ""]) {
    await page.evaluate(`history.pushState(null, "", ${JSON.stringify(`${url}/dashboard${path}`)})`);
    await page.getByRole("heading", { level: 1 }).waitFor();
    await page.locator("[aria-busy=true]").first().waitFor({ state: "detached" });
    const seen = await page.evaluate(
      "[window.isBroken === true, document.querySelectorAll('#root img, #root script, #root a[href*=\"//evil\"], #root [onload], #root [onerror]').length]",
    );
    assert.deepEqual(seen, [false, 0], path);
  }
  await page.goto(`${url}/dashboard/reviews/${review}`);
  assert.equal(await page.getByLabel("number of record 2").inputValue(), HOSTILE[1]);
  await page.getByRole("button", { name: "Approve" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Approve" }).click();
  await page.getByText("Approved. The run continues.").waitFor();
  await page.goto(`${url}/dashboard/runs/${run}`);
  await page
    .getByRole("region", { name: "Records" })
    .getByRole("cell", { name: HOSTILE[1] ?? "" })
    .first()
    .waitFor();
  assert.equal(await page.locator("#root img, #root script").count(), 0);
  await page.context().close();
});

/** In YAML, as one string. */
const all = JSON.stringify(HOSTILE.join(" "));

/** Every text that the author of a document may choose. */
const documents = (target: string): readonly string[] => [
  `account: acme\nname: ${JSON.stringify(HOSTILE[0])}`,
  `strategy: strat_hostile
account: acme
name: ${all}
description: ${all}
hosts: [${target}]
fields:
  - { key: token, type: password, label: ${all}, help: ${all} }
  - { key: region, type: select, label: ${all}, options: [{ value: x, label: ${all} }] }
login: { type: none }`,
  `blueprint: hostile
account: acme
name: ${all}
description: ${all}
nodes:
  - { id: data, type: input, refKey: data, name: ${all} }
  - { id: rows, type: parse, name: ${all}, from: data, format: json }
  - { id: look, type: review, name: ${all}, from: rows, title: ${all}, instructions: ${all} }
  - { id: out, type: output, refKey: out, from: look }`,
];

testInAll(
  "what comes from outside, on the pages of runs, reviews and credentials",
  "what authors, customers and operators have written is text on the pages that set things up",
  { timeout: 400_000 },
  async () => {
    const { operators, caller } = stage;
    await operators.installation.apply(...documents("http://127.0.0.1:9"));
    await operators.installation.apply(
      ...documents("http://127.0.0.1:9").map((each) => `${each}\n# ${HOSTILE[1]}`),
    );
    const { body: session, text } = await caller.post("/credential-sessions", {
      strategy_id: "strat_hostile",
      name: HOSTILE.join(" ").slice(0, 200),
    });
    assert.ok(session.hosted_url, text);
    await submitHostedForm(session.hosted_url, { token: "canary-value", region: "x" });
    await operators.installation.createKey("acme", { name: HOSTILE[0] ?? "" });
    const run = await stage.trigger("hostile", [{ a: 1 }], { run_name: HOSTILE[2] ?? "" });
    const review = await stage.waitForReview(run);
    const page = await stage.openPage("admin", "/blueprints");
    for (const [path, shown] of [
      ["/blueprints", 1],
      ["/blueprints/acme/hostile", 1],
      ["/blueprints/acme/hostile?tab=document", 0],
      ["/blueprints/acme/hostile?tab=versions", 0],
      ["/blueprints/acme/hostile?tab=try", 0],
      ["/strategies", 1],
      ["/strategies/acme/strat_hostile", 1],
      ["/strategies/acme/strat_hostile?tab=document", 0],
      ["/strategies/acme/strat_hostile?tab=credentials", 1],
      ["/credentials", 1],
      ["/sessions", 0],
      ["/accounts", 1],
      ["/accounts/acme", 0],
      ["/keys", 1],
      ["/audit", 0],
      ["/operators", 0],
      ["/tokens", 0],
      ["/system", 0],
      ["", 0],
      [`/runs/${run}`, 1],
      [`/reviews/${review}`, 1],
    ] as const) {
      await page.goto(`${url}/dashboard${path}`);
      await assertText(page, path);
      if (shown > 0)
        await page
          .getByText("<img src=x onerror=hostile()>")
          .or(page.getByText("<svg onload"))
          .first()
          .waitFor();
    }
    await page.context().close();
  },
);

/** What would have been run calls a function that nobody has made, or has left an element behind. The editor's own images have no source. */
async function assertText(page: Page, path: string): Promise<void> {
  await page.getByRole("heading", { level: 1 }).waitFor();
  await page.locator("[aria-busy=true]").first().waitFor({ state: "detached" });
  const left = await page.evaluate(
    'document.querySelectorAll(\'#root img:not(.cm-widgetBuffer):not([src^="data:"]), #root script, #root a[href*="//evil"], #root a[href^=javascript], #root [onload], #root [onerror]\').length',
  );
  assert.equal(left, 0, path);
  for (const frame of page.frames().slice(1))
    assert.equal(
      await frame.locator("img, script:not([src]), [onload], [onerror]").count(),
      0,
      `${path}: ${frame.name()}`,
    );
}

test("no browser has complained, of the policy, of a script, or of a request elsewhere", () => {
  assert.deepEqual(stage.problems, []);
});
