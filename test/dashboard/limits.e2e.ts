// The pages of operators and webhooks, in a real Chromium: people are limited to accounts, and an endpoint for operators is made and changed.
import assert from "node:assert/strict";
import { join } from "node:path";
import { after, before, test } from "node:test";
import type { Locator, Page } from "playwright-core";
import { detachMonth } from "#actions/audit/detach-month.ts";
import { exportMonth } from "#actions/audit/export-month.ts";
import { findChainEnd, recordAudit } from "#db/audit-entries.ts";
import { eventOf } from "../audit/audit-log.ts";
import { axeLightAndDark } from "../axe.ts";
import { until } from "../eventually.ts";
import type { Someone } from "../operator/stage.ts";
import { choose, openDashboardStage, type DashboardStage } from "./dashboard-stage.ts";

let stage: DashboardStage;
let page: Page;
let someone: Someone;

before(async () => {
  stage = await openDashboardStage();
  await stage.operators.installation.apply("account: globex\nname: Globex");
  someone = await stage.operators.operator("operator");
  page = await stage.openPage("admin", "/operators");
});

after(async () => await stage?.[Symbol.asyncDispose]());

/** `LATCHKEY_PICTURES=FOLDER` keeps what was looked at. */
async function look(what: string): Promise<void> {
  const folder = process.env["LATCHKEY_PICTURES"];
  if (folder !== undefined) await page.screenshot({ path: join(folder, `${what}.png`), fullPage: true });
  assert.deepEqual(await axeLightAndDark(page), [], what);
}

/** In how many lines they stand. */
async function linesOf(cells: Locator): Promise<number> {
  const boxes = await Promise.all((await cells.all()).map(async (cell) => await cell.boundingBox()));
  return new Set(boxes.map((box) => Math.round(box?.y ?? -1))).size;
}

test("an operator is limited to an account, and then has its pages alone", async () => {
  await page.getByRole("button", { name: `Actions for ${someone.email}` }).click();
  await page.getByRole("menuitem", { name: "Accounts" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByRole("checkbox", { name: /Globex/ }).check();
  await look("limit-operator");
  await dialog.getByRole("button", { name: "Change accounts" }).click();
  await dialog.waitFor({ state: "hidden" });
  const row = page.getByRole("row").filter({ hasText: someone.email });
  await row.getByRole("cell", { name: "globex", exact: true }).waitFor();
  await look("operators");
  // On a phone a row is a card, with every column below its name.
  const wide = page.viewportSize() ?? { width: 1_280, height: 720 };
  const cells = row.getByRole("cell");
  assert.equal(await linesOf(cells), 1);
  await page.setViewportSize({ width: 390, height: 844 });
  assert.equal(await linesOf(cells), await cells.count());
  await page.setViewportSize(wide);

  const context = await stage.newContext();
  const { cookie } = await stage.operators.holding(someone);
  const [name = "", value = ""] = cookie.split("=");
  const { url } = stage.operators.service;
  await context.addCookies([{ name, value, url, httpOnly: true, sameSite: "Strict" }]);
  const theirs = await context.newPage();
  await theirs.goto(`${url}/dashboard/accounts`);
  await theirs.getByRole("link", { name: "Globex", exact: true }).waitFor();
  assert.equal(await theirs.getByText("acme", { exact: true }).count(), 0);
  for (const [title, isThere] of [
    ["Runs", true],
    ["Webhooks", true],
    ["System", false],
    ["Operators", false],
  ] as const)
    assert.equal(
      await theirs.getByRole("navigation").getByRole("link", { name: title }).count(),
      isThere ? 1 : 0,
      title,
    );
  await theirs.goto(`${url}/dashboard/`);
  await theirs.getByRole("heading", { name: "Overview", level: 1 }).waitFor();
  await context.close();
});

test("an endpoint for operators is created, and what it gets is changed", async () => {
  await page.goto(`${stage.operators.service.url}/dashboard/webhooks`);
  await page.getByRole("button", { name: "New endpoint" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("Account").selectOption({ label: "None: for operators" });
  await dialog.getByLabel("URL").fill("https://chat.example/hook");
  await dialog.getByRole("checkbox", { name: "What needs a person: A credential is locked" }).uncheck();
  await look("new-endpoint");
  await dialog.getByRole("button", { name: "Create endpoint" }).click();
  await page.getByRole("button", { name: "I've saved it" }).waitFor();
  const [made] = await stage.operators.db.query(
    "select id, events from webhook_endpoint where account_id is null",
  );
  assert.deepEqual(made?.["events"], [
    "operator.review_waiting",
    "operator.write_uncertain",
    "operator.webhook_disabled",
  ]);
  await page.goto(`${stage.operators.service.url}/dashboard/webhooks/${String(made?.["id"])}`);
  await choose(page, "this endpoint", "Change");
  await dialog.getByRole("checkbox", { name: "All events" }).check();
  await dialog.getByLabel("Description").fill("The team's chat");
  await look("change-events");
  await dialog.getByRole("button", { name: "Save" }).click();
  await dialog.waitFor({ state: "hidden" });
  await page.getByText("The team's chat").waitFor();
  await look("endpoint");
  const [changed] = await stage.operators.db.query(
    "select events from webhook_endpoint where account_id is null",
  );
  assert.deepEqual(changed?.["events"], ["*"]);
});

test("the audit log is filtered by days", async () => {
  const log = `${stage.operators.service.url}/dashboard/audit`;
  await page.goto(`${log}?to=2000-01-01`);
  await page.getByText("No entries match").waitFor();
  await page.goto(`${log}?from=2000-01-01`);
  await page.getByRole("table").getByText("Operator created").first().waitFor();
});

test("the audit log says until when entries were exported and detached", async () => {
  const { db, signing, installation } = stage.operators;
  // An account of long ago: those of the stage have entries of today alone.
  await db.query(
    `insert into account (id, slug, document, name, allowed_origins, session_lifetime_ms, retention_ms, concurrency)
     values ('acct_old', 'old', '{}', 'Old', '{}', 1, 1, 1)`,
  );
  await recordAudit(db, signing.audit, eventOf("acct_old", 0), "2020-08-10T00:00:00.000Z");
  await until("the entry has its number", async () => (await findChainEnd(db, "acct_old"))?.count === 1);
  const request = { month: "2020-08", file: join(installation.dataFolder, "2020-08.ndjson") };
  await exportMonth(db, signing.audit, request);
  await detachMonth(db, signing.audit, request);
  await page.goto(`${stage.operators.service.url}/dashboard/audit`);
  await page.getByText("Entries before 2020-09-01 were exported").waitFor();
  await page.getByRole("button", { name: "Verify integrity" }).click();
  await page.getByText("are what was written").waitFor();
  await look("exported-months");
  await page.goto(`${stage.operators.service.url}/dashboard/audit?account=acme`);
  await page.getByRole("table").getByText("Document published").first().waitFor();
  assert.equal(await page.getByText("were exported").count(), 0);
});
