import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import Fastify from "fastify";
import type { Browser, Page } from "playwright-core";
import { axe } from "../axe.ts";
import { registerIcon } from "#api/icon.ts";
import { registerReference } from "#api/openapi-routes.ts";
import { OPERATIONS } from "../../scripts/generate/public-api/operations.ts";
import { launchChromium } from "../hosted/chromium.ts";
import { inTier } from "../tiers.ts";

const app = Fastify();
let url: string;
let browser: Browser;

before(async () => {
  registerReference(app, { publicUrl: () => url });
  registerIcon(app);
  url = await app.listen({ host: "127.0.0.1", port: 0 });
  browser = await launchChromium();
});

after(async () => {
  await browser?.close();
  await app.close();
});

/** How wide the page's icon is: 0 where the page's policy, or anything else, keeps it from being shown. */
const ICON_WIDTH = `new Promise((resolve) => {
  const image = new Image();
  image.onload = image.onerror = () => resolve(image.naturalWidth);
  image.src = document.querySelector("link[rel=icon]").href;
})`;

const LOOKS = [
  [1400, "light", "rgb(255, 255, 255)"],
  [390, "light", "rgb(255, 255, 255)"],
  [390, "dark", "rgb(16, 20, 27)"],
] as const;

/** Each width and each scheme once. */
const isRepresentative = ([width, scheme]: (typeof LOOKS)[number]): boolean =>
  width === 1400 || scheme === "dark";

for (const [width, colorScheme, ground] of inTier(LOOKS, isRepresentative)) {
  test(`the reference at ${width} px, ${colorScheme}: styled, not wider than the screen, nothing from elsewhere`, async () => {
    const page = await browser.newPage({ viewport: { width, height: 900 }, colorScheme });
    const requests: string[] = [];
    const complaints: string[] = [];
    page.on("request", (request) => requests.push(new URL(request.url()).href));
    page.on("console", (message) => complaints.push(message.text()));
    await page.goto(`${url}/docs`);
    assert.deepEqual(requests, [`${url}/docs`, `${url}/docs/style.css`, `${url}/docs/script.js`]);
    assert.notEqual(await page.evaluate(ICON_WIDTH), 0, "the icon is shown");
    assert.deepEqual(complaints, [], "the policy refuses nothing");
    assert.equal(await page.evaluate("getComputedStyle(document.body).backgroundColor"), ground);
    const overhang = "document.documentElement.scrollWidth - document.documentElement.clientWidth";
    assert.equal(await page.evaluate(overhang), 0);
    // Also with every answer unfolded.
    await page.evaluate("document.querySelectorAll('details').forEach((answer) => (answer.open = true))");
    assert.equal(await page.evaluate(overhang), 0);
    for (const { id } of OPERATIONS) {
      await page.click(`nav a[href="#${id}"]`);
      assert.ok(await page.locator(`#${id} h3`).isVisible(), id);
      assert.equal(new URL(page.url()).hash, `#${id}`);
    }
    assert.deepEqual(await axe(page), []);
    await page.close();
  });
}

const shown = async (page: Page): Promise<readonly string[]> => [
  ...new Set(
    await page
      .locator("figure[data-language]:visible")
      .evaluateAll((figures) => figures.map((figure) => figure.getAttribute("data-language") ?? "")),
  ),
];

test("the reader's language is shown alone and remembered, Copy copies it, and the search finds operations", async () => {
  const context = await browser.newContext({ permissions: ["clipboard-read", "clipboard-write"] });
  const page = await context.newPage();
  await page.goto(`${url}/docs`);
  assert.deepEqual(await shown(page), ["shell"]);
  await page.getByText("Python", { exact: true }).first().click();
  assert.deepEqual(await shown(page), ["python"]);
  await page.reload();
  assert.deepEqual(await shown(page), ["python"]);
  assert.deepEqual(await axe(page), []);
  await page.getByRole("button", { name: "Copy Python: Cancel a run" }).click();
  await page.locator("#cancelRun").getByText("Copied").waitFor();
  assert.match(
    String(await page.evaluate("navigator.clipboard.readText()")),
    /^run = client\.runs\.cancel\("run_/,
  );

  await page.keyboard.press("/");
  await page.keyboard.type("schedule cron");
  await page.getByText(/^\d of 20 operations$/).waitFor();
  assert.ok(await page.locator("#putSchedule").isVisible());
  assert.equal(await page.locator("#cancelRun").isVisible(), false);
  assert.equal(await page.locator('nav a[href="#cancelRun"]').isVisible(), false);
  assert.deepEqual(await axe(page), []);
  await page.keyboard.press("Control+A");
  await page.keyboard.press("Delete");
  assert.ok(await page.locator("#cancelRun").isVisible());
  await context.close();
});

test("without script every example is there, and nothing that needs one", async () => {
  const context = await browser.newContext({ javaScriptEnabled: false });
  const page = await context.newPage();
  await page.goto(`${url}/docs`);
  for (const language of ["shell", "typescript", "python"])
    assert.ok(await page.locator(`#cancelRun figure[data-language=${language}]`).isVisible(), language);
  assert.equal(await page.locator("[data-tool]:visible").count(), 0);
  await context.close();
});
