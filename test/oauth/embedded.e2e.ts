/** Signing in at a target from an embedded flow, in a real Chromium without third-party cookies: a window of its own. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { testInAll } from "../tiers.ts";
import type { Browser, FrameLocator, Page } from "playwright-core";
import { must } from "#lib/assert.ts";
import { blockThirdPartyCookies, launchChromium } from "../hosted/chromium.ts";
import {
  kinds,
  openFlow,
  openVisitor,
  serveHostPage,
  type Site,
  startSite,
  told,
  toldOf,
} from "../hosted/embed-stage.ts";
import { openOAuthBench, type OAuthBench } from "./oauth-setup.ts";

let bench: OAuthBench;
let browser: Browser;
let app: Site;

before(async () => {
  app = await startSite("localhost");
  bench = await openOAuthBench(() => []);
  await bench.installation.apply(`account: acme
name: Acme Inc.
allowed_origins: ["${app.origin}"]`);
  await serveHostPage(app, bench.service.url);
  browser = await launchChromium();
});
after(async () => {
  await browser?.close();
  app?.close();
  await bench?.[Symbol.asyncDispose]();
});

async function visit() {
  const visitor = await openVisitor(browser);
  await blockThirdPartyCookies(visitor.page);
  // The provider's own pages ask for a font from elsewhere.
  await visitor.page.context().route(/fonts\.googleapis\.com/, async (route) => await route.abort());
  await visitor.page.goto(app.origin);
  return visitor;
}

async function create(): Promise<{ id: string; embed_url: string; client_token: string }> {
  const body = { origin: app.origin, blueprint_keys: ["items"] };
  const answer = await bench.caller.post("/embedded-credential-sessions", body);
  assert.equal(answer.status, 201, answer.text);
  return answer.body;
}

const read = async (id: string) => (await bench.caller.get(`/embedded-credential-sessions/${id}`)).body;

/** Presses the button of the form, and waits for the window. */
async function leave(page: Page, frame: FrameLocator, name = /^Continue to /): Promise<Page> {
  const opened = page.context().waitForEvent("page");
  await frame.getByRole("button", { name }).click();
  return await opened;
}

async function signIn(opened: Page): Promise<void> {
  await opened.waitForURL(`${bench.provider.issuer}/**`);
  await opened.locator("input[name=login]").fill("ada");
  await opened.locator("input[name=password]").fill("ada-password");
  await opened.locator("input[name=password]").press("Enter");
  await opened.locator("input[name=prompt][value=consent]").waitFor({ state: "attached" });
}

/** By key: where a machine has no fonts, a button with nothing but text has no size to click on. */
const agree = async (opened: Page): Promise<void> =>
  await opened.locator("button[type=submit]").press("Enter");

test("the window goes to the target and closes by itself; the frame goes on, and a run uses the token", async () => {
  const session = await create();
  await using visitor = await visit();
  const { page, requested } = visitor;
  const frame = await openFlow(page, session);
  const opened = await leave(page, frame);
  await frame.getByRole("heading", { name: "Continue in the other window" }).waitFor();
  await signIn(opened);
  const closed = opened.waitForEvent("close");
  await agree(opened);
  await closed;
  await frame.getByRole("heading", { name: "Northwind is connected" }).waitFor();
  const completed = await toldOf(page, "completed");
  const now = await read(session.id);
  assert.deepEqual([now.status, now.credential_id], ["completed", completed.credential_id]);
  assert.deepEqual(kinds((await told(page)).events), [
    "ready",
    "opened",
    "submitted",
    "view_changed",
    "oauth_opened",
    "oauth_closed",
    "view_changed",
    "completed",
  ]);
  assert.ok(!requested.join("\n").includes(session.client_token));
  const run = await bench.caller.post("/blueprints/items/trigger", { credential_id: now.credential_id });
  assert.equal((await bench.caller.waitForRun(run.body.id)).body.status, "completed");
});

testInAll(
  "one who agrees at once, and the states of the frame (hosted/embedded-states)",
  "somebody who does not agree finds the form again, and can agree after all",
  {},
  async () => {
    const session = await create();
    await using visitor = await visit();
    const { page } = visitor;
    const frame = await openFlow(page, session);
    const opened = await leave(page, frame);
    await signIn(opened);
    await opened.locator("a[href*=abort]").press("Enter");
    await frame.getByRole("heading", { name: "Northwind is not connected" }).waitFor();
    const { code, recoverable } = await toldOf(page, "error");
    assert.deepEqual([code, recoverable], ["oauth_denied", true]);
    assert.equal((await read(session.id)).status, "pending");
    const again = await leave(page, frame);
    await again.waitForURL(`${bench.provider.issuer}/**`);
    await again.locator("input[name=prompt][value=consent]").waitFor({ state: "attached" });
    await agree(again);
    await toldOf(page, "completed");
  },
);

testInAll(
  "a window that a script opens",
  "a browser that opens no window by script: a button does it, and the flow goes on",
  {},
  async () => {
    const session = await create();
    await using visitor = await visit();
    const { page } = visitor;
    await page.context().addInitScript("globalThis.open = () => null");
    await page.reload();
    const frame = await openFlow(page, session);
    await frame.getByRole("button", { name: /^Continue to / }).click();
    await frame.getByRole("alert").getByText("Your browser blocked the window").waitFor();
    assert.deepEqual(await toldOf(page, "popup_blocked"), {});
    const opened = await leave(page, frame, /^Open /);
    await signIn(opened);
    await agree(opened);
    await toldOf(page, "completed");
    const { events } = await told(page);
    assert.ok(events.some(({ type, payload }) => type === "error" && payload.code === "popup_blocked"));
    assert.equal((await read(session.id)).status, "completed");
  },
);

testInAll(
  "a window that is not cut off, and its page (hosted/embedded-states)",
  "a page that isolates itself cuts the window off: that one goes, a button opens another, and the flow goes on",
  {},
  async () => {
    const session = await create();
    await using visitor = await visit();
    const { page, complaints } = visitor;
    const host = must(app.pages.get("/"), "the page of the others");
    const isolation = { "cross-origin-opener-policy": "same-origin" };
    app.pages.set("/isolated", { ...host, headers: { ...host.headers, ...isolation } });
    await page.goto(`${app.origin}/isolated`);
    const frame = await openFlow(page, session);
    const cutOff = await leave(page, frame);
    const gone = cutOff.isClosed() ? Promise.resolve() : cutOff.waitForEvent("close");
    await frame.getByRole("alert").getByText("Open it with the button below").waitFor();
    assert.deepEqual(await toldOf(page, "popup_blocked"), {});
    // Nothing empty is left over for somebody to wonder about.
    await gone;
    assert.deepEqual(page.context().pages(), [page]);
    const opened = await leave(page, frame, /^Open /);
    await signIn(opened);
    const closed = opened.waitForEvent("close");
    await agree(opened);
    await closed;
    await frame.getByRole("heading", { name: "Northwind is connected" }).waitFor();
    await toldOf(page, "completed");
    assert.equal((await read(session.id)).status, "completed");
    assert.deepEqual(complaints, []);
  },
);

test("nobody is sent anywhere that we have not said, and a window is sent only by our own frame", async () => {
  const session = await create();
  const post = async (form: Record<string, string>, headers: Record<string, string> = {}) =>
    await fetch(`${session.embed_url}/leave`, {
      method: "POST",
      redirect: "manual",
      headers,
      body: new URLSearchParams(form),
    });
  await using visitor = await visit();
  const { page } = visitor;
  const frame = await openFlow(page, session);
  const opened = await leave(page, frame);
  await opened.close();
  const form: Record<string, string> = {};
  for (const name of ["state", "url", "proof"])
    form[name] = await frame.locator(`form.leave input[name=${name}]`).inputValue();
  const own = await post(form);
  assert.equal(own.status, 303);
  assert.match(String(own.headers.get("set-cookie")), /HttpOnly; SameSite=Lax/);
  assert.equal((await post({ ...form, url: "https://evil.example/" })).status, 403);
  assert.equal((await post({ ...form, state: "x".repeat(43) })).status, 403);
  assert.equal((await post({ ...form, proof: "" })).status, 403);
  assert.equal((await post(form, { "sec-fetch-site": "cross-site" })).status, 403);
  assert.equal((await post(form, { origin: app.origin })).status, 403);
  // The window was closed: the form can be had again, and the frame be left.
  await frame.getByRole("button", { name: "Start over" }).click();
  await frame.getByRole("button", { name: /^Continue to / }).waitFor();
  await frame.getByRole("button", { name: "Cancel" }).click();
  assert.deepEqual(await toldOf(page, "exited"), { at_view: "form", reason: "cancelled" });
});
