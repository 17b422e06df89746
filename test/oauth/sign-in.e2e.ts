/** The whole way of an end user in a real Chromium: our page, a real provider's login and consent, and back; then a run. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { Browser, BrowserContextOptions, Page } from "playwright-core";
import { launchChromium } from "../hosted/chromium.ts";
import { listen } from "../hosted/hosted-setup.ts";
import { openOAuthBench, type OAuthBench } from "./oauth-setup.ts";

const WAIT_MS = 15_000;

let bench: OAuthBench;
let browser: Browser;
let application: { readonly origin: string; close(): void };
const referers: (string | undefined)[] = [];

before(async () => {
  application = await listen((request, response) => {
    if (request.url !== "/favicon.ico") referers.push(request.headers.referer);
    response.setHeader("content-type", "text/html").end("<!doctype html><title>Landed</title>");
  });
  bench = await openOAuthBench(() => []);
  await bench.installation.apply(
    `account: acme
name: Acme Inc.
allowed_origins: ["${application.origin}"]`,
  );
  browser = await launchChromium();
});
after(async () => {
  await browser?.close();
  application?.close();
  await bench?.[Symbol.asyncDispose]();
});

async function openPage(options: BrowserContextOptions = {}): Promise<Page> {
  const context = await browser.newContext(options);
  context.setDefaultTimeout(WAIT_MS);
  // The provider's own pages ask for a font from elsewhere.
  await context.route(/fonts\.googleapis\.com/, async (route) => await route.abort());
  return await context.newPage();
}

async function signInAtProvider(page: Page): Promise<void> {
  await page.waitForURL(`${bench.provider.issuer}/**`);
  await page.locator("input[name=login]").fill("ada");
  await page.locator("input[name=password]").fill("ada-password");
  await page.locator("input[name=password]").press("Enter");
  await page.locator("input[name=prompt][value=consent]").waitFor({ state: "attached" });
}

/** By key: where a machine has no fonts, a button with nothing but text has no size to click on. */
async function agree(page: Page): Promise<void> {
  await page.locator("button[type=submit]").press("Enter");
}

for (const javaScriptEnabled of [true, false]) {
  const how = javaScriptEnabled ? "" : " with JavaScript disabled";

  test(`our page leads to the provider and back to return_url; a run then uses the token${how}`, async () => {
    const session = await bench.session("strat_northwind", `${application.origin}/back?x=1`);
    const page = await openPage({ javaScriptEnabled });
    const complaints: string[] = [];
    page.on("console", (message) => {
      const isOurs = message.location().url.startsWith(bench.service.url);
      if (isOurs && ["error", "warning"].includes(message.type())) complaints.push(message.text());
    });
    await page.goto(session.hosted_url);
    const host = new URL(bench.provider.issuer).host;
    assert.equal(await page.getByRole("heading", { level: 1 }).textContent(), "Connect Northwind");
    await page.getByRole("button", { name: `Continue to ${host}` }).click();
    await signInAtProvider(page);
    assert.equal((await bench.status(session.id)).status, "pending");
    await agree(page);
    await page.waitForURL(`${application.origin}/**`);
    assert.equal(page.url(), `${application.origin}/back?x=1&session_id=${session.id}`);
    // Neither the link nor the code is told to the page that is returned to.
    assert.ok(!(referers.at(-1) ?? "").includes("/connect/"), referers.at(-1));
    assert.deepEqual(complaints, []);
    const { status, credential_id: id } = await bench.status(session.id);
    assert.equal(status, "completed");
    const { body } = await bench.caller.post("/blueprints/items/trigger", { credential_id: id });
    assert.equal((await bench.caller.waitForRun(body.id)).body.status, "completed");
    const results = await bench.caller.get(`/blueprint-runs/${body.id}/results?deliveryMethod=direct`);
    assert.equal(results.body.results.out.totalRecords, 2);
    const cookies = await page.context().cookies();
    const ours = cookies.filter(({ name }) => name.startsWith("latchkey-sign-in-"));
    assert.deepEqual(
      ours.map(({ httpOnly, sameSite, path }) => [httpOnly, sameSite, path]),
      [[true, "Lax", "/"]],
    );
    await page.context().close();
  });
}

test("cancelled at the provider: back on our page, which says so and leads there again", async () => {
  const session = await bench.session("strat_northwind", `${application.origin}/back`);
  const page = await openPage();
  await page.goto(session.hosted_url);
  await page.getByRole("button", { name: /^Continue to/ }).click();
  await signInAtProvider(page);
  await page
    .getByText(/cancel/i)
    .first()
    .click();
  await page.waitForURL(`${session.hosted_url}?again=refused`);
  assert.match(String(await page.getByRole("alert").textContent()), /Northwind is not connected/);
  await page.getByRole("button", { name: /^Continue to/ }).click();
  await page.waitForURL(`${bench.provider.issuer}/**`);
  await agree(page);
  await page.waitForURL(`${application.origin}/**`);
  assert.equal((await bench.status(session.id)).status, "completed");
  await page.context().close();
});
