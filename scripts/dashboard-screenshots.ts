/**
 * Takes the pictures of `docs/dashboard.md`: each page, wide and on a phone, light and dark, at a service that is started for it.
 * `node scripts/run.mjs scripts/dashboard-screenshots.ts [pattern of names]`.
 */
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { shrinkPng } from "./small-png.ts";
import { EMAILS, openScene } from "./dashboard-scene.ts";
import { openDashboardStage } from "../test/dashboard/dashboard-stage.ts";

const FOLDER = join(import.meta.dirname, "../docs/screenshots/dashboard");
const SCREENS = { desktop: { width: 1440, height: 900 }, phone: { width: 390, height: 844 } } as const;
/** Of a long page the beginning is enough. */
const HEIGHT_MAX = 1_600;
const WANTED = process.argv[2] ?? "";

await using stage = await openDashboardStage({}, EMAILS);
await using scene = await openScene(stage);
const { test, credential, session, failed, webhook, dead, done, waiting, review } = scene;

/** Name, address, and what is done before the picture. */
const PAGES: readonly (readonly [name: string, path: string, prepare?: (page: Page) => Promise<void>])[] = [
  ["overview", ""],
  ["runs", "/runs"],
  ["run-waiting", `/runs/${waiting}`],
  ["run-failed", `/runs/${failed}`],
  ["run-results", `/runs/${done}`],
  ["run-graph", `/runs/${waiting}`, async (page) => await page.getByText("Graph", { exact: true }).click()],
  ["reviews", "/reviews"],
  ["review", `/reviews/${review}`],
  [
    "run-again",
    `/runs/${done}`,
    async (page) => {
      await page.getByRole("button", { name: "Run again" }).click();
      await page.getByText("This starts a new run with the same inputs").waitFor();
    },
  ],
  ["test-login", `/runs/${test}`],
  ["blueprints", "/blueprints"],
  ["blueprint", "/blueprints/acme/supplier-invoices"],
  ["blueprint-health", "/blueprints/acme/price-list?tab=health"],
  [
    "blueprint-document",
    "/blueprints/acme/supplier-invoices?tab=document",
    async (page) => await page.getByText("Valid", { exact: true }).waitFor(),
  ],
  [
    "blueprint-versions",
    "/blueprints/acme/supplier-invoices?tab=versions",
    async (page) => await page.getByRole("button", { name: "View version 2" }).click(),
  ],
  [
    "blueprint-try",
    "/blueprints/acme/supplier-invoices?tab=try",
    async (page) => await page.getByRole("button", { name: "Fill in from the last run" }).click(),
  ],
  ["strategies", "/strategies"],
  ["strategy", "/strategies/acme/strat_portal"],
  ["strategy-document", "/strategies/acme/strat_portal?tab=document"],
  ["strategy-credentials", "/strategies/acme/strat_portal?tab=credentials"],
  ["credentials", "/credentials"],
  ["credential", `/credentials/${credential}`],
  ["sessions", "/sessions"],
  ["session", `/sessions/${session}`],
  ["secrets", "/secrets"],
  [
    "secret-new",
    "/secrets",
    async (page) => {
      await page.getByRole("button", { name: "New secret" }).click();
      await page.getByRole("dialog").getByLabel("Name").fill("WESTBROOK");
    },
  ],
  ["accounts", "/accounts"],
  ["account", "/accounts/acme"],
  ["keys", "/keys"],
  ["webhooks", "/webhooks"],
  [
    "webhook-new",
    "/webhooks",
    async (page) => {
      await page.getByRole("button", { name: "New endpoint" }).click();
      await page.getByRole("dialog").getByLabel("URL").fill("https://app.contoso.example/hooks");
    },
  ],
  ["webhook", `/webhooks/${webhook}`],
  [
    "webhook-delivery",
    `/webhooks/${webhook}`,
    async (page) => await page.getByRole("button", { name: /^Show/ }).first().click(),
  ],
  ["webhook-dead", `/webhooks/${dead}`],
  ["audit", "/audit"],
  ["operators", "/operators"],
  ["tokens", "/tokens"],
  ["system", "/system"],
  ["own-sign-in", "/me"],
  [
    "sign-in",
    "",
    async (page) => {
      await page.context().clearCookies();
      await page.reload();
    },
  ],
];

mkdirSync(FOLDER, { recursive: true });
for (const [screen, viewport] of Object.entries(SCREENS)) {
  for (const colorScheme of ["light", "dark"] as const) {
    const page = await stage.openPage("admin", "/me", { viewport, colorScheme });
    for (const [name, path, prepare] of PAGES) {
      const file = `${name}-${screen}-${colorScheme}`;
      if (!new RegExp(WANTED).test(file)) continue;
      await page.goto(`${stage.operators.service.url}/dashboard${path}`);
      await settle(page);
      await prepare?.(page);
      await settle(page);
      // What sticks to the window's edge would hang in the middle of a long picture.
      const height = Math.min(
        Number(await page.evaluate("document.documentElement.scrollHeight")),
        HEIGHT_MAX,
      );
      await page.setViewportSize({ width: viewport.width, height: Math.max(height, viewport.height) });
      await settle(page);
      writeFileSync(join(FOLDER, `${file}.png`), shrinkPng(await page.screenshot()));
      await page.setViewportSize(viewport);
      console.log(file);
    }
    await page.context().close();
  }
}
if (stage.problems.length > 0) throw new Error(stage.problems.join("\n"));

async function settle(page: Page): Promise<void> {
  await page.getByRole("heading", { level: 1 }).waitFor();
  await page.locator("[aria-busy=true]").first().waitFor({ state: "detached" });
  await page.evaluate(
    "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done, 300))))",
  );
}
