/** Visits that are none, and visits that break off: fetched ahead, painted before script comes, closed and opened again. */
import assert from "node:assert/strict";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import type { Browser, BrowserContext, Page } from "playwright-core";
import { must } from "#lib/assert.ts";
import { fillInNothing, findProgram, launch, openProfile, type Program } from "./chromium.ts";
import { openFlow, openVisitor, serveHostPage, type Site, startSite, toldOf, until } from "./embed-stage.ts";
import { GOOD, setUpEmbedded, type Embedded } from "./embedded-setup.ts";

const WAIT_MS = 30_000;

let app: Site;
let embedded: Embedded;
let program: Program;
let browser: Browser;

before(async () => {
  app = await startSite("localhost");
  embedded = await setUpEmbedded({ origins: [app.origin] });
  await serveHostPage(app, embedded.service.url);
  program = await findProgram();
  browser = await launch(program);
});
after(async () => {
  await browser?.close();
  program?.remove();
  await embedded?.[Symbol.asyncDispose]();
  app?.close();
});

const createHosted = async (): Promise<{ readonly id: string; readonly hosted_url: string }> =>
  (await embedded.acme.post("/credential-sessions", { strategy_id: "strat_portal" })).body;
const statusOf = async (id: string): Promise<string> =>
  (await embedded.acme.get(`/credential-sessions/${id}`)).body.status;

async function fillIn(page: Page): Promise<void> {
  await page.getByLabel("Email address").fill(GOOD.email);
  await page.getByLabel("Password", { exact: true }).fill(GOOD.password);
  await page.getByRole("button", { name: "Connect" }).click();
}

test("a browser that fetches the link and the frame ahead changes nothing, and the link works after it", async () => {
  const [hosted, session] = [await createHosted(), await embedded.create()];
  const ahead = [hosted.hosted_url, session.embed_url];
  const links = ahead.map((url) => `<link rel="prefetch" href="${url}">`).join("");
  app.pages.set("/ahead", { html: `<!doctype html>${links}` });
  await using visitor = await openVisitor(browser);
  const { page, requested } = visitor;
  await page.goto(`${app.origin}/ahead`, { waitUntil: "load" });
  for (const url of ahead)
    await until(page, `performance.getEntriesByName(${JSON.stringify(url)}).length === 1`);
  for (const url of ahead) assert.ok(requested.includes(url), url);
  assert.deepEqual(
    [await statusOf(hosted.id), (await embedded.read(session.id)).status],
    ["pending", "pending"],
  );
  await page.goto(hosted.hosted_url);
  await fillIn(page);
  await page.getByRole("heading", { name: "Your login is saved" }).waitFor();
});

test("the form is painted and can be sent before any script of it has come", async () => {
  const { id, hosted_url } = await createHosted();
  await using visitor = await openVisitor(browser);
  const { page } = visitor;
  const held: string[] = [];
  await page.route("**/*.js", (route) => void held.push(route.request().url()));
  await page.goto(hosted_url, { waitUntil: "commit" });
  await until(page, "performance.getEntriesByName('first-contentful-paint').length === 1");
  assert.equal(held.length, 1, held.join());
  assert.ok(await page.getByRole("heading", { name: "Connect Northwind Portal" }).isVisible());
  await page.getByLabel("Email address").fill(GOOD.email);
  await page.getByLabel("Password", { exact: true }).fill(GOOD.password);
  await page.getByLabel("Password", { exact: true }).press("Enter");
  await page.getByRole("heading", { name: "Your login is saved" }).waitFor();
  assert.equal(await statusOf(id), "completed");
});

/** Whether any file of a folder has the text. */
const isKept = (folder: string, text: string): boolean =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .some((entry) => readFileSync(join(entry.parentPath, entry.name)).includes(text));

/** What somebody does in their own browser until they close it. */
async function useProfile(folder: string, use: (page: Page, context: BrowserContext) => Promise<void>) {
  const context = await openProfile(program, folder);
  context.setDefaultTimeout(WAIT_MS);
  try {
    await use(must(context.pages()[0], "the first page"), context);
  } finally {
    await context.close();
  }
}

test("a browser closed while somebody types and opened again has kept nothing of it, and goes on to the end", async () => {
  const folder = mkdtempSync(join(tmpdir(), "latchkey-profile-"));
  const [hosted, session] = [await createHosted(), await embedded.create()];
  const email = "half-typed@acme.example";
  const secret = "half-typed secret";
  try {
    await useProfile(folder, async (page, context) => {
      await page.goto(hosted.hosted_url);
      const other = await context.newPage();
      await other.goto(app.origin);
      const frame = await openFlow(other, session);
      for (const form of [page, frame]) {
        await form.getByLabel("Email address").fill(email);
        await form.getByLabel("Password", { exact: true }).fill(secret);
      }
    });
    // What is sent now the browser would keep by itself, for its user: that is no doing of the pages.
    fillInNothing(folder);
    await useProfile(folder, async (page) => {
      await page.goto(hosted.hosted_url);
      assert.equal(await page.getByLabel("Email address").inputValue(), "");
      await fillIn(page);
      await page.getByRole("heading", { name: "Your login is saved" }).waitFor();
      await page.goto(app.origin);
      const frame = await openFlow(page, session);
      assert.equal(await frame.getByLabel("Email address").inputValue(), "");
      await frame.getByLabel("Email address").fill(GOOD.email);
      await frame.getByLabel("Password", { exact: true }).fill(GOOD.password);
      await frame.getByRole("button", { name: "Connect" }).click();
      await toldOf(page, "completed");
    });
    assert.ok(isKept(folder, "/connect/assets/"), "what may be kept is found");
    for (const text of [email, secret, GOOD.email, GOOD.password, session.client_token])
      assert.ok(!isKept(folder, text), "the profile has kept what was typed, or the token");
    assert.equal(await statusOf(hosted.id), "completed");
    assert.equal((await embedded.read(session.id)).status, "completed");
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});
