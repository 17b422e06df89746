// From "a customer says that nothing came" to the run, the reason and what fixes it, in a real Chromium.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { Page } from "playwright-core";
import { axeLightAndDark } from "../axe.ts";
import { submitHostedForm } from "../caller.ts";
import { until } from "../eventually.ts";
import { testInAll } from "../tiers.ts";
import { openDashboardStage, type DashboardStage } from "./dashboard-stage.ts";

let stage: DashboardStage;
let page: Page;
const runs: string[] = [];

before(async () => {
  stage = await openDashboardStage();
  for (const [week, data] of [
    ["45", [{ supplier: "Northwind", total: 1 }]],
    ["46", '[{"total":1}'],
    ["47", '[{"total":1},{"total":2}'],
  ] as const) {
    const named = { run_name: `Invoices of Hofbauer Logistik, week ${week}`, note: "Hofbauer Logistik" };
    const run = await stage.trigger("supplier-invoices", data, named);
    await stage.caller.waitForRun(run, 100_000);
    runs.push(run);
  }
  page = await stage.openPage("admin", "");
});

after(async () => await stage?.[Symbol.asyncDispose]());

const steps = () => page.getByRole("region", { name: "Steps" });

test("a customer's failed run is found from anywhere by part of the name, and says why", async () => {
  await page.getByRole("heading", { name: "Overview" }).waitFor();
  await page.keyboard.press("Control+k");
  await page.getByRole("dialog", { name: "Search" }).getByLabel("Search").fill("OFBAUER log");
  const results = page.getByRole("listbox", { name: "Results" });
  await results.getByText("week 47").waitFor();
  await results.getByText("Node rows").first().waitFor();
  await page.keyboard.press("Enter");
  await page.waitForURL(`**/runs/${runs[2]}`);
  await page.getByText("Invalid data").waitFor();
  await page.getByRole("link", { name: /note Hofbauer Logistik/ }).waitFor();
  // Every node, also those that send nothing, and those after the failure.
  for (const row of [/^data.*Done/s, /^rows.*Failed/s, /^checked.*Stopped/s, /^out.*Not reached/s])
    await steps().getByRole("button", { name: row }).waitFor();
});

test("the failed run is compared with the last good one, and its input is shown", async () => {
  await page.getByRole("button", { name: "Compare with the last good run" }).click();
  const table = page.getByRole("table", { name: "Records by step" });
  assert.match(await table.getByRole("row", { name: /^checked/ }).innerText(), /0\s+1$/);
  await steps().getByText('[{"total":1},{"total":2}', { exact: true }).waitFor();
});

test("the timeline and the graph share the selected node, and no text of the graph is small", async () => {
  await steps()
    .getByRole("button", { name: /^checked/ })
    .click();
  await page.getByText("Graph", { exact: true }).click();
  const chosen = steps().getByRole("button", { name: "checked", pressed: true });
  await chosen.waitFor();
  await page.getByRole("region", { name: "Details of checked" }).waitFor();
  const sizes = await page.evaluate<number[]>(
    `[...document.querySelectorAll("section[aria-label^='Graph'] :is(span, text)")].map((each) => parseFloat(getComputedStyle(each).fontSize))`,
  );
  assert.ok(sizes.length > 0 && Math.min(...sizes) >= 12, sizes.join());
  await steps().getByRole("button", { name: "rows" }).click();
  await page.getByText("Timeline", { exact: true }).click();
  await steps().getByRole("button", { name: /^rows/, expanded: true }).waitFor();
  assert.equal(new URL(page.url()).searchParams.get("node"), "rows");
});

test("the Blueprint opens at the step that failed", async () => {
  await page.getByRole("link", { name: "Open the Blueprint at this step" }).click();
  const editor = page.getByRole("textbox", { name: "The Blueprint's document" });
  await editor.waitFor();
  await page.waitForFunction(
    "document.activeElement?.closest('.cm-editor')?.querySelector('.cm-activeLine')?.textContent.includes('rows')",
  );
});

test("a line of the list has the customer, the Blueprint and the reason; runs are filtered as one types", async () => {
  await page.getByRole("link", { name: "Runs", exact: true }).click();
  await page.getByLabel("Name or metadata").fill("week 4");
  await page.waitForURL(/\?q=week\+4$/);
  const row = page.getByRole("row", { name: /week 46/ });
  await row.waitFor();
  await page.getByRole("button", { name: "Failed", exact: true }).click();
  await page.getByRole("row", { name: /week 45/ }).waitFor({ state: "detached" });
  assert.match(
    await row.innerText(),
    /Hofbauer Logistik[\s\S]*supplier-invoices[\s\S]*Invalid data Not valid JSON/,
  );
  const heights = await page.evaluate<number[]>(
    `[...document.querySelectorAll("tbody tr")].map((each) => each.getBoundingClientRect().height)`,
  );
  assert.ok(heights.length === 2 && heights.every((height) => height <= 37), heights.join());
  assert.match(page.url(), /\?q=week\+4&status=failed$/);
});

test("failures with one reason are a group, which leads to its runs, and these are run again together", async () => {
  await page.getByText("By error", { exact: true }).click();
  await page.getByRole("cell", { name: "2", exact: true }).waitFor();
  await page.getByRole("link", { name: "Invalid data" }).click();
  await page.getByLabel("Select all runs of this page").check();
  await page.getByRole("button", { name: "Run 2 again" }).click();
  await page.getByText("2 runs are started with the same inputs").waitFor();
  await page.getByRole("dialog").getByRole("button", { name: "Run again" }).click();
  await page.getByRole("alert").getByText("2 runs started").waitFor();
  const made = await stage.operators.db.query("select 1 from run where again_of = any($1)", [runs]);
  assert.equal(made.length, 2);
});

test("a list goes on to the next page, and back to the one before", async () => {
  // More than two pages, of another customer.
  await stage.operators.db.query(
    `insert into run (id, run_key, account_id, blueprint_id, blueprint_version, api_key_id, name, metadata, ignored_keys, status,
       progress_step, created_at, started_at, ended_at, timeout_ms, retention_ms, response_bytes)
     select 'run_' || lpad(n::text, 28, '0'), gen_random_uuid(), account_id, blueprint_id, blueprint_version, api_key_id,
       convert_to('planted ' || n, 'UTF8'), '{}', '[]', 'completed', 'completed', created_at - n * interval '1 second',
       created_at, created_at, timeout_ms, retention_ms, 2
     from run, generate_series(1, 130) n where id = $1`,
    [runs[0]],
  );
  await page.goto(`${stage.operators.service.url}/dashboard/runs?run_name=planted`);
  const pages = page.getByRole("navigation", { name: "Pages" });
  const go = async (name: string, first: string): Promise<void> => {
    await pages.getByRole("button", { name }).click();
    await page.getByRole("link", { name: first, exact: true }).waitFor();
  };
  await page.getByRole("link", { name: "planted 1", exact: true }).waitFor();
  await go("Next page", "planted 51");
  await go("Next page", "planted 101");
  await pages.getByText("Page 3").waitFor();
  await go("Previous page", "planted 51");
  await go("Previous page", "planted 1");
  assert.equal(await pages.getByRole("button", { name: "Previous page" }).isDisabled(), true);
});

test("on a phone the filters are behind a button, which counts those in use", async () => {
  const phone = await stage.openPage("viewer", "/runs?status=failed", {
    viewport: { width: 390, height: 844 },
  });
  const chip = phone.getByRole("button", { name: "Last hour" });
  const toggle = phone.getByRole("button", { name: "Filters (1)" });
  await toggle.waitFor();
  assert.equal(await chip.isVisible(), false);
  await toggle.click();
  await chip.click();
  await phone.getByRole("button", { name: "Filters (2)" }).waitFor();
  assert.match(phone.url(), /last=1h/);
  await phone.context().close();
});

test("a completed run says how many of its records have errors", async () => {
  const rows = [
    { supplier: "", total: 1 },
    { supplier: "Northwind", total: 2 },
  ];
  const run = await stage.trigger("plain-list", rows);
  await stage.caller.waitForRun(run, 60_000);
  const own = await stage.openPage("reviewer", `/runs/${run}`);
  await own.getByText("Completed, 1 with errors", { exact: true }).waitFor();
  const records = own.getByRole("region", { name: "Records" });
  await records.getByRole("button", { name: "Show record 2" }).waitFor();
  await own.getByText("1 of 2 records has errors", { exact: true }).waitFor();
  await own.getByRole("list", { name: "Errors by reason" }).getByText(/^1 × /).waitFor();
  await own.getByRole("button", { name: "Show it" }).click();
  await records.getByRole("button", { name: "Show record 2" }).waitFor({ state: "detached" });
  await records.getByRole("button", { name: "Show record 1" }).waitFor();
  await own.context().close();
});

test("reviews are in the order that is chosen, which is in the URL", async () => {
  const reviews: string[] = [];
  for (const wrong of [1, 3]) {
    const given = Array.from({ length: 4 }, (_, n) => ({ supplier: n < wrong ? "" : "Northwind", total: 1 }));
    reviews.push(await stage.waitForReview(await stage.trigger("supplier-invoices", given)));
  }
  const list = await stage.openPage("reviewer", "/runs");
  await list.getByRole("button", { name: "Awaiting review" }).click();
  const rows = list.getByRole("table", { name: "Runs" }).getByRole("row");
  await until("only those that await a review", async () => {
    const texts = (await rows.allTextContents()).slice(1);
    return texts.length >= reviews.length && texts.every((text) => text.includes("Awaiting review"));
  });
  assert.match(list.url(), /progress_step=awaiting_review/);
  await list.context().close();
  const own = await stage.openPage("reviewer", "/reviews");
  const links = own.getByRole("link", { name: "Please look at these invoices" });
  const order = async (): Promise<readonly string[]> =>
    await links.evaluateAll((all) => all.map((each) => each.getAttribute("href")?.split("/").at(-1) ?? ""));
  await links.first().waitFor();
  const longestWait = await order();
  assert.deepEqual(longestWait.slice(-2), reviews);
  await own.getByLabel("Order").selectOption("Most errors first");
  await until("most errors come first", async () => (await order())[0] === reviews[1]);
  await own.reload();
  await links.first().waitFor();
  assert.equal((await order())[0], reviews[1]);
  await own.context().close();
});

test("a list of credentials is searched by part of a label or of an ID", async () => {
  await stage.operators.installation.apply(
    "strategy: strat_portal\naccount: acme\nname: Portal\nfields: [{ key: token, type: password }]\nlogin: { type: none }",
  );
  const { body } = await stage.caller.post("/credential-sessions", {
    strategy_id: "strat_portal",
    name: "Portal of Northwind",
  });
  await submitHostedForm(body.hosted_url, { token: "canary-value" });
  await page.goto(`${stage.operators.service.url}/dashboard/credentials`);
  await page.getByLabel("Label or ID").fill("southgate");
  await page.getByRole("heading", { name: "No credentials match" }).waitFor();
  await page.getByLabel("Label or ID").fill("ORTHWI");
  await page.getByRole("link", { name: "Portal of Northwind" }).waitFor();
});

test("a locked credential says why and what to do; the overview lists it, and on a phone nothing dangerous is above", async () => {
  await stage.operators.db.query(
    `update credential set login_rejections = 2, login_locked_until = app_now() + interval '1 hour' where name = $1`,
    ["Portal of Northwind"],
  );
  const own = await stage.openPage("operator", "", { viewport: { width: 390, height: 844 } });
  await own.getByText("The target rejected its last 2 logins. No run logs in with it.").waitFor();
  await own.getByRole("link", { name: "Portal of Northwind" }).click();
  await own.getByText("The target rejected its last 2 logins.").waitFor();
  const unlock = own.getByRole("button", { name: "Unlock Portal of Northwind" });
  assert.equal(await unlock.count(), 1);
  assert.deepEqual(await axeLightAndDark(own), []);
  await unlock.click();
  await own.getByRole("dialog").getByRole("button", { name: "Unlock" }).click();
  await own.getByText("This credential is locked").waitFor({ state: "detached" });
  await own.context().close();
});

test("Try it has a field for each property of an input's schema", async () => {
  await stage.operators.installation.apply(`blueprint: report
account: acme
nodes:
  - id: period
    type: input
    refKey: period
    required: true
    schema: { type: object, required: [from], properties: { from: { type: string, title: First day }, days: { type: integer } } }
  - { id: rows, type: parse, from: period, format: json }
  - { id: out, type: output, refKey: out, from: rows }`);
  await page.goto(`${stage.operators.service.url}/dashboard/blueprints/acme/report?tab=try`);
  await page.getByLabel("days").fill("many");
  await page.getByLabel("First day").fill("2026-11-01");
  await page.getByRole("button", { name: "Start run" }).click();
  await page
    .getByText(/must be integer/)
    .first()
    .waitFor();
  await page.getByLabel("days").fill("30");
  await page.getByRole("button", { name: "Start run" }).click();
  await page.waitForURL(/\/runs\/run_/);
  await steps()
    .getByRole("button", { name: /^period/ })
    .click();
  await steps().getByText('{"from":"2026-11-01","days":30}').waitFor();
  // Again with what that run was triggered with.
  await page.goto(`${stage.operators.service.url}/dashboard/blueprints/acme/report?tab=try`);
  await page.getByRole("button", { name: "Fill in from the last run" }).click();
  await until("it is filled in", async () => (await page.getByLabel("days").inputValue()) === "30");
  assert.equal(await page.getByLabel("First day").inputValue(), "2026-11-01");
});

test("a line that is no origin is named before anything is sent", async () => {
  await page.goto(`${stage.operators.service.url}/dashboard/accounts/acme`);
  await page.getByLabel("Allowed return origins").fill("https://one.example\nhttps://two.example/path");
  let isSent = false;
  page.on("request", (request) => (isSent ||= request.method() === "POST"));
  await page.getByRole("button", { name: "Save changes" }).click();
  await page.getByText("Line 2: an origin is only scheme, host and port").waitFor();
  assert.equal(isSent, false);
  assert.deepEqual(stage.problems, []);
});

test("a Blueprint's health is told in rates, durations and records, by day", async () => {
  const health = await stage.openPage("viewer", "/blueprints/acme/supplier-invoices?tab=health");
  const last = health.getByRole("region", { name: "Last 30 days" });
  const rate = /^\d+(\.\d)? % \d+ of \d+$/;
  await last.getByText(rate).waitFor();
  await last.getByText("95th percentile").waitFor();
  await health.getByText("Show the days as a table").click();
  const days = health.getByRole("table", { name: "By day" });
  await days.getByText(rate).first().waitFor();
  const { searchParams } = new URL(
    (await days.getByRole("link").first().getAttribute("href")) ?? "",
    health.url(),
  );
  const [from = 0, to = 0] = ["since", "until"].map((name) => Date.parse(searchParams.get(name) ?? ""));
  assert.equal(to - from, 86_400_000, "a day leads to its runs");
  assert.deepEqual(await axeLightAndDark(health), []);
  await last.getByRole("link", { name: "View failed runs" }).click();
  await health
    .getByRole("link", { name: /week 46/ })
    .first()
    .waitFor();
  await health.context().close();
});

test("an operator token is made, shown once, works with its role, is listed with its last use, and revoked", async () => {
  page = await stage.openPage("admin", "/tokens");
  await page.getByRole("heading", { name: "No operator tokens yet" }).waitFor();
  assert.deepEqual(await axeLightAndDark(page), [], "no operator tokens");
  await page.getByRole("button", { name: "New token" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("Label").fill("Continuous integration");
  await dialog.getByLabel("Role").selectOption("reviewer");
  await dialog.getByText("Can see runs and their results and decide reviews").waitFor();
  await dialog.getByLabel("Expires after").selectOption("30 days");
  assert.deepEqual(await axeLightAndDark(page), [], "a new operator token");
  await dialog.getByRole("button", { name: "Create token" }).click();
  const token = (await page.getByText(/^lko_/).textContent()) ?? "";
  assert.deepEqual(await axeLightAndDark(page), [], "an operator token that is shown once");
  await page.getByRole("button", { name: "I've saved it" }).click();
  const asked = async (path: string): Promise<number> =>
    (await stage.operators.withToken(token, "GET", path)).status;
  assert.deepEqual([await asked("/runs"), await asked("/keys")], [200, 403]);
  await page.reload();
  const row = page.getByRole("row", { name: /Continuous integration.*reviewer.*Active.*expires/s });
  await row.waitFor();
  assert.doesNotMatch((await row.textContent()) ?? "", /never/, "its last use");
  assert.ok(!(await page.content()).includes(token.slice(4, 20)));
  assert.deepEqual(await axeLightAndDark(page), [], "operator tokens");
  await page.getByRole("button", { name: "Revoke Continuous integration" }).click();
  await dialog.getByText("are refused from their next request on").waitFor();
  await dialog.getByRole("button", { name: "Revoke" }).click();
  await page.getByRole("row", { name: /Continuous integration.*Revoked/ }).waitFor();
  assert.equal(await asked("/runs"), 401);
});

testInAll(
  "the same by the operator API (operator/device-sign-in), and the command line's side (cli/login)",
  "a command line's code is typed, compared and approved, and another one is refused; axe finds nothing, wide and on a phone",
  {},
  async () => {
    const begin = async () => {
      const { url } = stage.operators.service;
      const headers = { "Content-Type": "application/json", "X-CSRF-Token": "none" };
      const body = JSON.stringify({ name: "ana@laptop" });
      const answer = await fetch(`${url}/operator/v1/session/device`, { method: "POST", headers, body });
      return (await answer.json()) as { readonly user_code: string; readonly device_code: string };
    };
    for (const width of [1_280, 390]) {
      const { user_code: code } = await begin();
      page = await stage.openPage("operator", "/device", { viewport: { width, height: 900 } });
      await page.getByLabel("Code").fill(code.toLowerCase());
      assert.deepEqual(await axeLightAndDark(page), [], "the code is typed");
      await page.getByRole("button", { name: "Continue" }).click();
      await page.getByText("ana@laptop").waitFor();
      await page.getByText(code, { exact: true }).waitFor();
      // What an operator may give: no admin.
      assert.deepEqual(await page.getByLabel("Role").locator("option").allTextContents(), [
        "operator",
        "reviewer",
        "viewer",
      ]);
      await page.getByLabel("Role").selectOption("viewer");
      await page.getByText("can change nothing").waitFor();
      assert.deepEqual(await axeLightAndDark(page), [], "who asks");
      await page.getByRole("button", { name: "Approve" }).click();
      await page.getByText("it continues within seconds, as viewer").waitFor();
      assert.deepEqual(await axeLightAndDark(page), [], "approved");
      await page.context().close();
    }
    const { user_code: code } = await begin();
    page = await stage.openPage("viewer", `/device?code=${code}`);
    await page.getByRole("button", { name: "Refuse" }).click();
    await page.getByText("The command line was not signed in").waitFor();
    await page.goto(`${stage.operators.service.url}/dashboard/device?code=${code}`);
    await page.getByText("The command line that waits with this code was not found").waitFor();
    await page.getByRole("button", { name: "Enter another code" }).click();
    await page.getByLabel("Code").waitFor();
  },
);
