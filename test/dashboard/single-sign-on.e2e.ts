// Single sign-on in a real Chromium, at a real provider on another site: from the sign-in page to what was asked for, and what is dangerous.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { BrowserContext, Page } from "playwright-core";
import { startProvider, type ProviderSite } from "../oauth/provider.ts";
import { codeOf } from "../operator/browser.ts";
import { oidcEnvironment } from "../operator/oidc-stage.ts";
import { axeLightAndDark } from "../axe.ts";
import { nextCode, openDashboardStage, type DashboardStage } from "./dashboard-stage.ts";

let stage: DashboardStage;
let provider: ProviderSite;
let url: string;
const people = new Map<string, Readonly<Record<string, unknown>>>();

before(async () => {
  // Another site than the service's 127.0.0.1: cookies that are Strict do not come along from there.
  provider = await startProvider({ host: "localhost", people, inIdToken: true });
  stage = await openDashboardStage(oidcEnvironment(provider.issuer));
  url = stage.operators.service.url;
  provider.open([`${url}/dashboard/oidc`]);
});
after(async () => {
  await stage?.[Symbol.asyncDispose]();
  await provider?.[Symbol.asyncDispose]();
});

async function openContext(): Promise<BrowserContext> {
  const context = await stage.chromium.newContext({ reducedMotion: "reduce" });
  context.setDefaultTimeout(100_000);
  // The provider's own pages ask for a font from elsewhere.
  await context.route(/fonts\.googleapis\.com/, async (route) => await route.abort());
  return context;
}

async function logIn(page: Page, who: string): Promise<void> {
  await page.waitForURL(`${provider.issuer}/**`);
  await page.locator("input[name=login]").fill(who);
  await page.locator("input[name=password]").fill("any");
  await page.locator("input[name=password]").press("Enter");
}

async function agree(page: Page): Promise<void> {
  await page.locator("input[name=prompt][value=consent]").waitFor({ state: "attached" });
  await page.locator("button[type=submit]").press("Enter");
}

async function assertAccessible(page: Page, what: string): Promise<void> {
  assert.deepEqual(await axeLightAndDark(page), [], what);
}

test("an admin comes in by the provider to the page that was asked for, and is asked there again before what is dangerous", async () => {
  const admin = await stage.operators.operator("admin");
  const other = await stage.operators.operator("viewer");
  people.set("ada", { email: admin.email, email_verified: true });
  const context = await openContext();
  const page = await context.newPage();
  await page.goto(`${url}/dashboard/runs?run_name=Nightly`);
  await page.getByRole("button", { name: "Sign in with Example ID" }).waitFor();
  await assertAccessible(page, "the sign-in page");
  await page.getByRole("button", { name: "Sign in with Example ID" }).click();
  await logIn(page, "ada");
  await agree(page);
  await page.getByRole("heading", { name: "Runs", level: 1 }).waitFor();
  assert.equal(
    page.url(),
    `${url}/dashboard/runs?run_name=Nightly`,
    "nothing of the provider's is in the address",
  );
  const cookies = (await context.cookies(url)).filter(({ name }) => name.startsWith("latchkey_operator"));
  assert.deepEqual(
    cookies.map(({ name, httpOnly, sameSite }) => [name, httpOnly, sameSite]),
    [["latchkey_operator", true, "Strict"]],
    "the cookie of the way back is gone",
  );

  await page.goto(`${url}/dashboard/operators`);
  await page
    .getByRole("row", { name: new RegExp(admin.email) })
    .getByText("single sign-on since")
    .waitFor();
  const [tab] = await Promise.all([
    context.waitForEvent("page"),
    (async () => {
      await page.getByRole("button", { name: `Actions for ${other.email}` }).click();
      await page.getByRole("menuitem", { name: "Disable" }).click();
      await page.getByRole("dialog").getByRole("button", { name: "Disable" }).click();
      const asking = page.getByRole("dialog", { name: "Confirm that it is you" });
      await asking.getByRole("link", { name: "Sign in again" }).waitFor();
      await asking.getByRole("link", { name: "Sign in again" }).click();
    })(),
  ]);
  await logIn(tab, "ada");
  // What waited goes on by itself, on the page that was left open.
  await page.getByRole("row", { name: new RegExp(`${other.email}.*Disabled`) }).waitFor();
  assert.equal(await page.getByRole("dialog").count(), 0);
  await context.close();
});

test("who says no there, or is nobody here, is told so and can use the password", async () => {
  const viewer = await stage.operators.operator("viewer");
  people.set("stranger", { email: "stranger@example.com", email_verified: true });
  const context = await openContext();
  const page = await context.newPage();
  await page.goto(`${url}/dashboard/reviews`);
  await page.getByRole("button", { name: "Sign in with Example ID" }).click();
  await page.waitForURL(`${provider.issuer}/**`);
  await page.locator("a[href*=abort]").press("Enter");
  await page
    .getByRole("alert")
    .getByText(/provider did not sign you in/)
    .waitFor();
  assert.equal(page.url(), `${url}/dashboard/oidc`);
  await assertAccessible(page, "a refusal");
  await page.getByRole("button", { name: "Back to sign-in" }).click();
  await page.getByRole("button", { name: "Sign in with Example ID" }).click();
  await logIn(page, "stranger");
  await agree(page);
  await page
    .getByRole("alert")
    .getByText(/No operator has your email address/)
    .waitFor();
  await page.getByRole("button", { name: "Back to sign-in" }).click();
  await page.getByLabel("Email").fill(viewer.email);
  await page.getByLabel("Password", { exact: true }).fill(viewer.password);
  await page.getByRole("button", { name: "Sign in", exact: true }).click();
  await page.getByRole("heading", { name: "Overview" }).waitFor();
  await context.close();
});

test("where our own second factor is wanted as well, it is set up without a password, and asked for at the next sign-in", async () => {
  const service = await stage.operators.installation.serve({ LATCHKEY_OIDC_REQUIRE_TOTP: "true" });
  provider.open([`${service.url}/dashboard/oidc`]);
  const viewer = await stage.operators.operator("viewer");
  people.set("grace", { email: viewer.email, email_verified: true });
  const arrive = async (): Promise<Page> => {
    const page = await (await openContext()).newPage();
    await page.goto(`${service.url}/dashboard`);
    await page.getByRole("button", { name: "Sign in with Example ID" }).click();
    await logIn(page, "grace");
    await agree(page);
    return page;
  };
  const first = await arrive();
  await first.getByRole("heading", { name: "Set up two-factor authentication" }).waitFor();
  await first.getByRole("button", { name: "Continue" }).click();
  await first.getByRole("img", { name: "QR code for your authenticator app" }).waitFor();
  const secret = (await first.locator("code").first().textContent()) ?? "";
  await first.getByLabel("Code", { exact: true }).fill(codeOf(secret));
  await first.getByRole("button", { name: "Confirm" }).click();
  await first.getByRole("button", { name: "I've saved these codes" }).click();
  await first.getByRole("heading", { name: "Overview" }).waitFor();
  await first.context().close();

  const second = await arrive();
  await second.getByRole("heading", { name: "Two-factor authentication" }).waitFor();
  await assertAccessible(second, "asked for the code");
  await second.getByLabel("Code").fill(nextCode(secret));
  await second.getByRole("button", { name: "Confirm" }).click();
  await second.getByRole("heading", { name: "Overview" }).waitFor();
  await second.context().close();
  await service.end();
});
