// docs/schedules.md#for-operators: the dashboard's pages of schedules, by the mouse alone.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { openCaller } from "../caller.ts";
import { axeLightAndDark } from "../axe.ts";
import { until } from "../eventually.ts";
import { openDashboardStage, type DashboardStage } from "./dashboard-stage.ts";

let stage: DashboardStage;

before(async () => {
  stage = await openDashboardStage();
});
after(async () => await stage?.[Symbol.asyncDispose]());

test("a schedule is found by its state, paused, resumed, and begins a run now; a viewer only looks", async () => {
  const { installation, service, db } = stage.operators;
  await installation.apply(
    "account: acme",
    `blueprint: open
account: acme
schedules: [{ key: nightly, cron: "0 2 * * *", time_zone: Europe/Berlin }]
nodes:
  - { id: given, type: input, refKey: given, default: "[]" }
  - { id: rows, type: parse, from: given, format: json }
  - { id: out, type: output, refKey: out, from: rows }`,
  );
  const caller = openCaller(service.url, await installation.createKey("acme"));
  const terms = { blueprint_key: "open", cron: "0 * * * *", time_zone: "UTC" };
  assert.equal((await caller.put("/schedules/hourly", terms)).status, 201);
  const page = await stage.openPage("operator", "/schedules");
  await page.getByRole("link", { name: "nightly" }).waitFor();
  assert.deepEqual(await axeLightAndDark(page), [], "the list");
  await page.getByRole("link", { name: "hourly" }).click();
  await page.getByRole("heading", { name: "hourly" }).waitFor();
  await page.getByText("No run yet").waitFor();
  assert.equal(await page.getByRole("heading", { name: "Next times" }).count(), 1);
  await page.getByRole("button", { name: "Pause" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Pause" }).click();
  await page.getByText("Paused by an operator").waitFor();
  await page.getByText("None while it is paused.").waitFor();
  assert.deepEqual(await axeLightAndDark(page), [], "a paused schedule");
  await page.getByRole("link", { name: "Schedules" }).click();
  await page.getByText("Paused", { exact: true }).click();
  await page.getByRole("link", { name: "nightly" }).waitFor({ state: "detached" });
  await page.getByRole("link", { name: "hourly" }).click();
  await page.getByRole("button", { name: "Resume" }).click();
  await page.getByRole("button", { name: "Pause" }).waitFor();
  await page.getByRole("button", { name: "Run now" }).click();
  await page.getByRole("button", { name: "Begin" }).click();
  await until("the run's page is shown", () => page.url().includes("/dashboard/runs/run_"));
  await page.getByText("Completed").first().waitFor();
  await page.goBack();
  await page.getByRole("row", { name: /Completed.*an operator/ }).waitFor();
  assert.deepEqual(await axeLightAndDark(page), [], "a schedule with a run");
  const [run] = await db.query<{ schedules: number }>(
    "select count(schedule_id)::int as schedules from run where status = 'completed'",
  );
  assert.equal(run?.schedules, 1);
  const viewer = await stage.openPage("viewer", "/schedules");
  await viewer.getByRole("link", { name: "hourly" }).click();
  await viewer.getByRole("heading", { name: "Last runs" }).waitFor();
  for (const name of ["Pause", "Run now"])
    assert.equal(await viewer.getByRole("button", { name }).count(), 0);
  assert.deepEqual(stage.problems, []);
});
