// The whole story of an operator in one browser, by the mouse and the keyboard alone: from a strategy that is written to the audit log.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { Page } from "playwright-core";
import { passwordLogin } from "../password-login.ts";
import { until } from "../eventually.ts";
import { connect } from "../caller.ts";
import { startTarget, type Target } from "../flow/target.ts";
import { axe, axeLightAndDark } from "../axe.ts";
import { isSignedBy, startReceiver } from "../webhooks/stage.ts";
import { choose, nextCode, openDashboardStage, type DashboardStage } from "./dashboard-stage.ts";

const RIGHT = "right-pass-4711";
const WRONG = "wrong-pass-0815";
const ORDERS = [
  { number: "A-1", total: 12 },
  { number: "A-2", total: -1 },
  { number: "A-3", total: -2 },
];

let stage: DashboardStage;
let target: Target;
let page: Page;
let run: string;
let again: string;
/** What takes the target's bookkeeping down. */
let isOutOfOrder = false;

const strategy = (): string => `strategy: strat_shop
account: acme
name: Shop
hosts: [${target.url}]
${passwordLogin(204)}
`;

const blueprint = (): string =>
  `blueprint: orders
account: acme
name: Orders
hosts: [${target.url}]
credentials: { shop: { strategy: strat_shop } }
metadata: [{ name: week }]
nodes:
  - { id: read, type: http, credential: shop, request: { method: GET, url: /orders }, records: items }
  - { id: checked, type: validate, from: read, rules: [{ assert: total > 0, field: total, message: The total must be above zero }] }
  - { id: look, type: review, from: checked, title: Look at the orders, editable: true }
  - { id: book, type: http, for_each: look, request: { method: POST, url: "${"TARGET"}/book", json: { number: "{{ number }}" } } }
  - { id: out, type: output, refKey: orders, from: look }
`.replace("TARGET", target.url);

before(async () => {
  target = await startTarget(({ path, body }) => {
    if (path === "/login") return { status: new URLSearchParams(body).get("password") === RIGHT ? 204 : 401 };
    if (path === "/post" && isOutOfOrder) return { status: 502 };
    return path === "/orders" ? { body: { items: ORDERS } } : { body: {} };
  });
  stage = await openDashboardStage();
});

after(async () => {
  await stage?.[Symbol.asyncDispose]();
  await target?.close();
});

/** Replaces what an editor holds, and publishes it. */
async function write(label: string, text: string): Promise<void> {
  const editor = page.getByRole("textbox", { name: label });
  await editor.waitFor();
  await editor.press("Control+a");
  // Or Chromium keeps the style of what is replaced, by an attribute that the page's policy refuses.
  await editor.press("Delete");
  await page.keyboard.insertText(text);
  await page.getByText("Valid", { exact: true }).waitFor();
  await page.getByRole("button", { name: "Publish…" }).click();
  await page.getByRole("button", { name: "Publish", exact: true }).click();
}

const runOf = (): string => /run_\w+/.exec(page.url())?.[0] ?? assert.fail(page.url());
const linkTo = (id: string) => page.getByRole("main").locator(`a[href$="/runs/${id}"]`);
const booked = (): number => target.requests.filter(({ path }) => path === "/book").length;

test("an operator signs in, and writes a strategy and a Blueprint", async () => {
  const operator = await stage.withApp("operator");
  const context = await stage.newContext();
  page = await context.newPage();
  await page.goto(`${stage.operators.service.url}/dashboard`);
  await page.getByLabel("Email").fill(operator.email);
  await page.getByLabel("Password", { exact: true }).fill(operator.password);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByLabel("Code").fill(nextCode(operator.secret));
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("link", { name: "Strategies" }).click();
  await page.getByRole("link", { name: "New strategy" }).click();
  await write("The new document", strategy());
  await page.getByRole("heading", { name: "Shop", level: 1 }).waitFor();
  await page.getByRole("link", { name: "Blueprints", exact: true }).click();
  await page.getByRole("link", { name: "New Blueprint" }).click();
  await write("The new document", blueprint());
  await page.getByRole("heading", { name: "Orders", level: 1 }).waitFor();
});

test("the login is tested with a credential: each step is seen, and no value", async () => {
  await connect(stage.caller, "strat_shop", { username: "ada", password: RIGHT });
  const wrong = await connect(stage.caller, "strat_shop", { username: "ada", password: WRONG });
  await page.getByRole("link", { name: "Strategies" }).click();
  await page.getByRole("link", { name: "Shop" }).click();
  await page.getByRole("tab", { name: "Credentials" }).click();
  // The newest is the first: the wrong one.
  await page.getByRole("button", { name: `Test login ${wrong}` }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Test login" }).click();
  await page.getByRole("heading", { name: "Test login", level: 1 }).waitFor();
  await page.getByText("Login failed").waitFor();
  const steps = page.getByRole("region", { name: "Steps" });
  await steps.getByRole("button", { name: /login step 1 \(POST \/login\).*Failed/s }).waitFor();
  await steps.getByText("Response from the target").waitFor();
  await steps.getByText(`${target.url}/login`).first().waitFor();
  await steps.getByRole("tab", { name: "Log" }).click();
  await steps.getByText("status=401").waitFor();
  assert.ok(!(await page.content()).includes(WRONG));
  assert.ok(
    !(await page.content()).includes("latchkey credentials unlock"),
    "the page has buttons, no commands",
  );
  await page.getByText(/est the login again\.$/).waitFor();
  await page.getByRole("button", { name: `New link of ${wrong}` }).waitFor();
  await page.getByRole("button", { name: `Unlock ${wrong}` }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Unlock" }).click();
  await page.getByText("The credential was unlocked.").waitFor();
  await page.getByRole("button", { name: `Unlock ${wrong}` }).waitFor({ state: "detached" });
  assert.equal(await page.getByRole("button", { name: "Run again" }).count(), 0);
  assert.deepEqual(await axe(page), []);
  await page.getByRole("link", { name: "Credentials" }).click();
  await page
    .getByRole("button", { name: /^Test login/ })
    .last()
    .click();
  await page.getByRole("dialog").getByRole("button", { name: "Test login" }).click();
  await page.getByText("Completed", { exact: true }).waitFor();
  assert.ok(!(await page.content()).includes(RIGHT));
  await page.getByRole("link", { name: "Runs", exact: true }).click();
  await page.getByText("Test login", { exact: true }).nth(1).waitFor();
});

test("the Blueprint is tried, watched live, reviewed with two records edited, and its results are seen", async () => {
  await page.getByRole("link", { name: "Blueprints", exact: true }).click();
  await page.getByRole("link", { name: "Orders" }).click();
  await page.getByRole("tab", { name: "Try it" }).click();
  const choice = page.getByLabel("Credential for shop");
  await choice.selectOption({ index: 2 });
  await page.getByLabel("week").fill("week 47");
  await page.getByRole("button", { name: "Start run" }).click();
  await page.waitForURL(/\/runs\/run_/);
  run = runOf();
  await page.getByRole("link", { name: "Open the review" }).click();
  for (const record of [2, 3]) await page.getByLabel(`total of record ${record}`).fill("5");
  await page.getByText("2 edited").waitFor();
  await page.getByRole("button", { name: "Approve" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Approve" }).click();
  await page.getByText("Decided by").waitFor();
  await linkTo(run).click();
  const records = page.getByRole("region", { name: "Records" });
  await records.getByRole("cell", { name: "A-3" }).waitFor();
  assert.equal(await records.getByRole("cell", { name: "5", exact: true }).count(), 2);
  assert.equal(booked(), 3);
});

test("it is run again after a warning that it writes again, once for two clicks, and both runs say so", async () => {
  await page.getByRole("button", { name: "Run again" }).click();
  const asking = page.getByRole("dialog", { name: "Run again?" });
  await asking.getByText("on the same version 1").waitFor();
  await asking.getByText("This run writes to other systems again").waitFor();
  assert.deepEqual(await axe(page), []);
  await asking.getByRole("button", { name: "Run again, and write again" }).dblclick();
  await page.getByText("Rerun of").waitFor();
  again = runOf();
  assert.notEqual(again, run);
  await page.getByRole("link", { name: /\bweek 47$/ }).waitFor();
  await linkTo(run).click();
  await page.getByText("Reruns").waitFor();
  assert.equal(await linkTo(again).count(), 1);
  const made = await stage.operators.db.query("select 1 from run where again_of = $1", [run]);
  assert.equal(made.length, 1);
});

const posted = (): readonly string[] =>
  target.requests.filter(({ path }) => path === "/post").map(({ body }) => body);

test("writes that may have happened are shown by their node, and decided together or each by itself", async () => {
  await stage.operators.installation.apply(`blueprint: posts
account: acme
hosts: [${target.url}]
nodes:
  - { id: data, type: input, refKey: data }
  - { id: rows, type: parse, from: data, format: json }
  - { id: post, type: http, for_each: rows, request: { method: POST, url: "${target.url}/post", json: { n: "{{ n }}" } } }
  - { id: out, type: output, refKey: out, from: rows }`);
  isOutOfOrder = true;
  const runs = await Promise.all([1, 2, 3].map(async (n) => await stage.trigger("posts", [{ n }])));
  for (const each of runs)
    while (
      (await stage.caller.get(`/blueprint-runs/${each}/status`)).body.progress_step !== "awaiting_review"
    )
      await page.waitForTimeout(50);
  const [first = "", ...others] = runs;
  await page.getByRole("link", { name: "Overview" }).click();
  await page.getByRole("link", { name: "3 uncertain writes" }).click();
  const group = page.getByRole("listitem").filter({ hasText: "posts, node post" });
  await group.getByText("3 of 3 runs").waitFor();
  await group.getByText("the target returned 502").waitFor();
  await group.getByText(`POST ${target.url}/post`).waitFor();
  await group.getByRole("button", { name: /^Show writes/ }).click();
  await group.getByRole("link", { name: first }).waitFor();
  for (const [width, height] of [
    [390, 844],
    [1280, 900],
  ] as const) {
    await page.setViewportSize({ width, height });
    assert.deepEqual(await axeLightAndDark(page), [], `${width}`);
    assert.equal(await page.evaluate("document.documentElement.scrollWidth > innerWidth"), false);
  }
  const viewer = await stage.openPage("viewer", "/writes");
  await viewer.getByText("the target returned 502").waitFor();
  assert.equal(await viewer.getByText(`POST ${target.url}`).count(), 0);
  assert.equal(await viewer.getByRole("button", { name: /happen/ }).count(), 0);
  await viewer.context().close();

  isOutOfOrder = false;
  await group.getByRole("button", { name: `Did not happen record 0 of ${first}` }).click();
  await page
    .getByRole("dialog", { name: "Send it again?" })
    .getByRole("button", { name: "Send again" })
    .click();
  await group.getByText("2 of 2 runs").waitFor();
  await stage.caller.waitForRun(first);
  assert.deepEqual(posted().slice(3), ['{"n":1}'], "it alone is sent again");
  await group.getByRole("button", { name: "They happened posts, node post" }).click();
  const asking = page.getByRole("dialog", { name: "Did all 2 happen?" });
  await asking.getByRole("button", { name: "They happened" }).click();
  await page.getByText("2 writes of 2 runs count as done.").waitFor();
  await page.getByText("No uncertain writes").waitFor();
  for (const each of others) assert.equal((await stage.caller.waitForRun(each)).body.status, "completed");
  assert.equal(posted().length, 4);
  const entries = await stage.operators.db.query<{ run: string }>(
    "select run_id as run from audit_entry where action = 'write.decide' and actor_kind = 'operator'",
  );
  assert.deepEqual(new Set(entries.map((entry) => entry.run)), new Set([first, ...others]));
});

test("a strategy is previewed as the end users' own page: language, width and colour scheme are chosen", async () => {
  await page.goto(`${stage.operators.service.url}/dashboard/strategies/acme/strat_shop`);
  const section = page.getByRole("region", { name: "Preview of the form" });
  const hosted = section.frameLocator("iframe");
  const ground = async () =>
    await hosted
      .locator("body")
      .evaluate((body) => body.ownerDocument.defaultView?.getComputedStyle(body).backgroundColor);
  // The service's own style sheet and script are at work in it.
  await hosted.getByRole("button", { name: /^Show / }).waitFor();
  assert.equal(await ground(), "rgb(243, 245, 248)");
  await section.getByText("Dark", { exact: true }).click();
  await hosted.locator("html[data-theme=dark]").waitFor();
  await until("the page is dark", async () => (await ground()) === "rgb(16, 20, 27)");
  await section.getByLabel("Language of the preview").selectOption("Arabic");
  await hosted.locator("html[lang=ar][dir=rtl]").waitFor();
  await section.getByText("Phone", { exact: true }).click();
  await until("it is as narrow as a phone", async () => {
    const box = await section.locator("iframe").boundingBox();
    return (box?.width ?? 1_000) <= 392;
  });
  // As high as the page: its button is seen without scrolling in the frame.
  await until("the button is in sight", async () => {
    const frame = await section.locator("iframe").boundingBox();
    const button = await hosted.locator("button[type=submit]").boundingBox();
    return frame !== null && button !== null && button.y + button.height <= frame.y + frame.height;
  });
  // It may send no form, and open no window.
  assert.equal(await section.locator("iframe").getAttribute("sandbox"), "allow-same-origin allow-scripts");
  assert.deepEqual(await axe(page), []);
});

test("the credential is deleted, running again says so, and the audit log has all of it", async () => {
  await page.getByRole("link", { name: "Credentials" }).click();
  // The run that waits for its review holds nothing, and fails when it goes on.
  for (let left = 2; left > 0; left--) {
    await page.getByRole("table", { name: "Credentials" }).getByRole("link").first().click();
    await page.getByRole("button", { name: /^Delete/ }).click();
    await page.getByRole("button", { name: "Delete permanently" }).click();
    await page.getByRole("dialog").waitFor({ state: "detached" });
    await page.getByRole("heading", { name: "Credentials", level: 1 }).waitFor();
    await assertCount(/^Test login/, left - 1);
  }
  await page.goto(`${stage.operators.service.url}/dashboard/runs/${run}`);
  await page.getByRole("button", { name: "Run again" }).click();
  const asking = page.getByRole("dialog", { name: "Run again?" });
  await asking.getByText(/The credential cred_\w+ was deleted/).waitFor();
  assert.equal(await asking.getByRole("button", { name: /^Run again/ }).count(), 0);
  await asking.getByRole("button", { name: "Cancel" }).click();
  await page.getByRole("link", { name: "Audit log" }).click();
  for (const action of [
    "config.apply",
    "credential.test_login",
    "review.decide",
    "run.again",
    "credential.delete",
  ]) {
    await page.getByLabel("Action").selectOption(action);
    await page.getByRole("table").getByTitle(action, { exact: true }).first().waitFor();
  }
  assert.deepEqual(stage.problems, []);
});

test("an endpoint of webhooks is created, tried, rotated, and told loudly when it is gone", async () => {
  let status = 204;
  const receiver = await startReceiver(() => ({ status, body: "as it answers" }));
  const { db } = stage.operators;
  try {
    const own = await stage.openPage("operator", "/webhooks");
    await own.getByText("No endpoints yet").waitFor();
    await own.getByRole("button", { name: "New endpoint" }).click();
    const form = own.getByRole("dialog", { name: "New webhook endpoint" });
    await form.getByLabel("URL").fill("http://example.com/hooks");
    await form.getByLabel("All events").uncheck();
    assert.equal(await form.getByRole("button", { name: "Create endpoint" }).isDisabled(), true);
    await form.getByLabel("Credentials", { exact: true }).check();
    await form.getByLabel("Runs: Completed").check();
    await form.getByRole("button", { name: "Create endpoint" }).click();
    await form.getByText("must begin with https://").waitFor();
    assert.deepEqual(await axeLightAndDark(own), [], "the form");
    await form.getByLabel("URL").fill(`${receiver.url}/hooks`);
    await form.getByRole("button", { name: "Create endpoint" }).click();
    const made = own.getByRole("dialog", { name: "New endpoint created" });
    const secret = await made.locator("pre").innerText();
    assert.match(secret, /^whsec_/);
    await made.getByRole("button", { name: "I've saved it" }).click();
    const [endpoint] = await db.query<{ events: string[] }>("select events from webhook_endpoint");
    assert.deepEqual(endpoint?.events.toSorted(), ["credential.*", "run.completed"]);
    await own.getByRole("link", { name: receiver.url }).click();

    await own.getByRole("button", { name: "Send a ping" }).click();
    await own.getByRole("row", { name: /ping.*Delivered.*204/ }).waitFor();
    assert.deepEqual(await axeLightAndDark(own), [], "an endpoint");
    await own.getByRole("button", { name: /^Show ping/ }).click();
    const shown = own.getByRole("dialog", { name: "ping" });
    await shown.getByText('"type": "ping"').waitFor();
    await shown.getByRole("row", { name: /1 204/ }).waitFor();
    assert.deepEqual(await axeLightAndDark(own), [], "a delivery");
    await shown.getByRole("button", { name: "Send again" }).click();
    await shown.getByRole("row", { name: /2 204/ }).waitFor();
    assert.equal(new Set(receiver.received.map(({ id }) => id)).size, 1);
    await shown.getByRole("button", { name: "Close" }).click();

    await choose(own, "this endpoint", "Rotate secret");
    await own.getByRole("button", { name: "Rotate", exact: true }).click();
    const rotated = own.getByRole("dialog", { name: "New signing secret" });
    const fresh = await rotated.locator("pre").innerText();
    await rotated.getByRole("button", { name: "I've saved it" }).click();
    await own.getByText("signs, too, until").waitFor();
    status = 410;
    await own.getByRole("button", { name: "Send a ping" }).click();
    await own.getByText("It answered 410 (gone)").waitFor();
    await own.getByText("1 event from before waits").waitFor();
    const last = receiver.received.at(-1) ?? assert.fail("it has come");
    assert.deepEqual([isSignedBy(secret, last), isSignedBy(fresh, last)], [true, true]);
    assert.equal(await own.getByRole("button", { name: "Send a ping" }).count(), 0);
    await own.getByRole("link", { name: "Webhooks 1 waiting" }).click();
    await own.getByText("An endpoint was disabled, because it failed").waitFor();
    await own.getByText(": it answered 410 (gone)").waitFor();
    assert.deepEqual(await axeLightAndDark(own), [], "a dead endpoint");
    await own.goto(`${stage.operators.service.url}/dashboard`);
    await own.getByText("This endpoint is disabled: it answered 410 (gone).").waitFor();
    await own.getByRole("link", { name: receiver.url }).click();

    status = 204;
    await own.getByRole("button", { name: "Change the URL" }).click();
    await own.getByRole("dialog").getByLabel("URL").fill(`${receiver.url}/moved`);
    assert.deepEqual(await axeLightAndDark(own), [], "another URL");
    await own.getByRole("button", { name: "Save" }).click();
    await own.getByRole("heading", { name: `${receiver.url}/moved` }).waitFor();
    await own.getByRole("button", { name: "Enable" }).click();
    await own.getByRole("dialog").getByRole("button", { name: "Enable" }).click();
    await own.getByText("Active").waitFor();
    await until("what has waited comes there", () => receiver.at("/moved").length === 1);
    await choose(own, "this endpoint", "Delete");
    await own.getByRole("button", { name: "Delete permanently" }).click();
    await own.getByText("No endpoints yet").waitFor();
    const viewer = await stage.openPage("viewer", "/webhooks");
    await viewer.getByText("No endpoints yet").waitFor();
    assert.equal(await viewer.getByRole("button", { name: "New endpoint" }).count(), 0);
    await Promise.all([own.context().close(), viewer.context().close()]);
  } finally {
    await receiver.close();
  }
});

async function assertCount(name: RegExp, count: number): Promise<void> {
  const shown = async (): Promise<number> => await page.getByRole("button", { name }).count();
  await until(`there are ${count}`, async () => (await shown()) === count);
}
