// docs/test-mode.md#operators: the dashboard's switch between live and test mode.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { axeLightAndDark } from "../axe.ts";
import { openCaller } from "../caller.ts";
import { openDashboardStage, type DashboardStage } from "./dashboard-stage.ts";

let stage: DashboardStage;

before(async () => {
  stage = await openDashboardStage();
});
after(async () => await stage?.[Symbol.asyncDispose]());

test("an operator switches to test mode, sees its runs alone below a banner, and leaves it", async () => {
  const { installation, service } = stage.operators;
  await installation.apply(
    "account: acme",
    `blueprint: open
account: acme
nodes:
  - { id: given, type: input, refKey: given, default: "[]" }
  - { id: rows, type: parse, from: given, format: json }
  - { id: out, type: output, refKey: out, from: rows }`,
  );
  for (const isTest of [false, true]) {
    const caller = openCaller(service.url, await installation.createKey("acme", { isTest }));
    const { body } = await caller.post("/blueprints/open/trigger", {
      run_name: isTest ? "of a test" : "of a user",
    });
    await caller.waitForRun(body.id);
  }
  const page = await stage.openPage("operator", "/runs");
  const [live, tests] = [page.getByText("of a user"), page.getByText("of a test")];
  await live.first().waitFor();
  assert.deepEqual([await tests.count(), await page.getByText("TEST MODE", { exact: true }).count()], [0, 0]);
  await page.getByRole("button", { name: /operator/ }).click();
  await page.getByRole("menuitem", { name: "Test mode" }).click();
  await page.getByText("TEST MODE", { exact: true }).waitFor();
  await page.getByRole("link", { name: "Runs" }).first().click();
  await tests.first().waitFor();
  assert.equal(await live.count(), 0);
  assert.deepEqual(await axeLightAndDark(page), []);
  await page.reload();
  await page.getByText("TEST MODE", { exact: true }).waitFor();
  await page.getByRole("button", { name: "Leave test mode" }).click();
  await page.getByText("TEST MODE", { exact: true }).waitFor({ state: "detached" });
  await page.getByRole("link", { name: "Runs" }).first().click();
  await live.first().waitFor();
  assert.equal(await tests.count(), 0);
  assert.deepEqual(stage.problems, []);
});
