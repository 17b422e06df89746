/** A login that is tried when it is submitted, in a real Chromium: on the page with and without script, and in a frame. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { Browser, Page } from "playwright-core";
import { axeLightAndDark } from "../axe.ts";
import { until } from "../eventually.ts";
import { launchChromium } from "./chromium.ts";
import {
  kinds,
  openFlow,
  openVisitor,
  serveHostPage,
  startSite,
  told,
  toldOf,
  type Site,
} from "./embed-stage.ts";
import { blueprint, setUpEmbedded, type Embedded } from "./embedded-setup.ts";
import {
  PASSWORD,
  startLoginTarget,
  STRATEGY,
  triedDocuments,
  type LoginTarget,
} from "./tried-login-stage.ts";

const WRONG = "not the password";
const BACK = "/back";

let app: Site;
let target: LoginTarget;
let embedded: Embedded;
let browser: Browser;

before(async () => {
  app = await startSite("localhost");
  target = await startLoginTarget();
  embedded = await setUpEmbedded({
    origins: [app.origin],
    documents: [...triedDocuments(target.origin), blueprint("tried", { target: STRATEGY })],
  });
  await serveHostPage(app, embedded.service.url);
  app.pages.set(BACK, { html: "<!doctype html><title>Back</title>" });
  browser = await launchChromium();
});
after(async () => {
  target.release();
  await browser?.close();
  await embedded?.[Symbol.asyncDispose]();
  target?.close();
  app?.close();
});

async function openSession(): Promise<{ readonly id: string; readonly hosted_url: string }> {
  const { body } = await embedded.acme.post("/credential-sessions", {
    strategy_id: STRATEGY,
    return_url: `${app.origin}${BACK}`,
  });
  return body;
}

async function fillIn(inside: Pick<Page, "getByLabel" | "getByRole">, username: string, password: string) {
  await inside.getByLabel("User name").fill(username);
  await inside.getByLabel("Password", { exact: true }).fill(password);
  await inside.getByRole("button", { name: "Connect" }).click();
}

for (const javaScriptEnabled of [true, false]) {
  const how = javaScriptEnabled ? "" : " with JavaScript disabled";
  test(`the page waits for the target, says that it refused, and goes on when it accepts${how}`, async () => {
    const session = await openSession();
    await using visitor = await openVisitor(browser, { javaScriptEnabled });
    const { page } = visitor;
    const goOn = async (): Promise<void> => {
      if (!javaScriptEnabled) await page.getByRole("button", { name: "See the result" }).click();
    };
    await page.goto(session.hosted_url);
    await fillIn(page, "ada", WRONG);
    await goOn();
    await page.getByRole("heading", { name: "Northwind did not accept this login" }).waitFor();
    assert.equal(await page.getByLabel("User name").inputValue(), "ada");
    assert.equal(await page.getByLabel("Password", { exact: true }).inputValue(), "");
    assert.deepEqual(await axeIf(javaScriptEnabled, page), []);
    await fillIn(page, "ada", PASSWORD);
    await goOn();
    await page.waitForURL(`${app.origin}${BACK}?session_id=${session.id}`);
    const { body } = await embedded.acme.get(`/credential-sessions/${session.id}`);
    assert.equal(body.status, "completed");
    assert.deepEqual(
      visitor.complaints.filter((complaint) => !/422/.test(complaint)),
      [],
    );
  });
}

/** axe is a script itself. */
const axeIf = async (javaScriptEnabled: boolean, page: Page): Promise<readonly string[]> =>
  javaScriptEnabled ? await axeLightAndDark(page) : [];

test("while the target has not answered, the page says what it waits for, and breaks no rule of accessibility", async () => {
  const session = await openSession();
  await using visitor = await openVisitor(browser);
  const { page } = visitor;
  await page.goto(session.hosted_url);
  await fillIn(page, "slow", PASSWORD);
  await page.getByRole("heading", { name: "Checking with Northwind…" }).waitFor();
  await until("the target is asked", () => target.logins.some(({ username }) => username === "slow"));
  // Its own request would be in the way.
  await using reader = await openVisitor(browser, { javaScriptEnabled: true });
  await reader.page.route("**/check*", async (route) => await route.abort("aborted"));
  await reader.page.goto(session.hosted_url);
  assert.deepEqual(await axeLightAndDark(reader.page), []);
  target.release();
  await page.waitForURL(`${app.origin}${BACK}?session_id=${session.id}`);
});

test("in a frame: the page around it is told that a login is verified, refused, and then completed", async () => {
  await using visitor = await openVisitor(browser);
  const { page } = visitor;
  await page.goto(app.origin);
  const session = await embedded.create({ origin: app.origin, blueprint_keys: ["tried"] });
  const frame = await openFlow(page, session);
  await fillIn(frame, "grace", WRONG);
  await frame.getByRole("heading", { name: "Northwind did not accept this login" }).waitFor();
  assert.equal(await frame.getByLabel("User name").inputValue(), "grace");
  assert.deepEqual(await toldOf(page, "error"), {
    code: "login_refused",
    message: "The target did not accept the login.",
    recoverable: true,
  });
  await fillIn(frame, "grace", PASSWORD);
  const done = await toldOf(page, "completed");
  assert.equal(done.credential_id, (await embedded.read(session.id)).credential_id);
  const { events } = await told(page);
  assert.deepEqual(kinds(events), [
    "ready",
    "opened",
    "submitted",
    "view_changed",
    "view_changed",
    "error",
    "submitted",
    "view_changed",
    "view_changed",
    "completed",
  ]);
  assert.deepEqual(
    events.filter(({ type }) => type === "view_changed").map(({ payload }) => payload.view),
    ["verifying", "form", "verifying", "success"],
  );
});
