import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import Fastify from "fastify";
import type { Browser } from "playwright-core";
import { registerIcon } from "#api/icon.ts";
import { registerReference } from "#api/openapi-routes.ts";
import { OPERATIONS } from "../../scripts/generate/public-api/operations.ts";
import { launchChromium } from "../hosted/chromium.ts";

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

for (const [width, colorScheme, ground] of [
  [1400, "light", "rgb(255, 255, 255)"],
  [390, "light", "rgb(255, 255, 255)"],
  [390, "dark", "rgb(16, 20, 27)"],
] as const) {
  test(`the reference at ${width} px, ${colorScheme}: styled, not wider than the screen, nothing from elsewhere`, async () => {
    const page = await browser.newPage({ viewport: { width, height: 900 }, colorScheme });
    const requests: string[] = [];
    const complaints: string[] = [];
    page.on("request", (request) => requests.push(new URL(request.url()).href));
    page.on("console", (message) => complaints.push(message.text()));
    await page.goto(`${url}/docs`);
    assert.deepEqual(requests, [`${url}/docs`, `${url}/docs/style.css`]);
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
    await page.close();
  });
}
