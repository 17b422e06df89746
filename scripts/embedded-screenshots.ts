/**
 * Takes the pictures of `docs/embedded.md`: states of the embedded flow in a customer's page, at a service that is started for
 * it, in a real Chromium. `node scripts/run.mjs scripts/embedded-screenshots.ts [pattern of names]`.
 */
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { shrinkPng } from "./small-png.ts";
import { launchChromium } from "../test/hosted/chromium.ts";
import { openFlow, toldOf } from "../test/hosted/embed-stage.ts";
import { EMBEDDED_STATES, setUpEmbeddedStates, WINDOW_STATES } from "../test/hosted/embedded-states.ts";

const FOLDER = join(import.meta.dirname, "../docs/screenshots/embedded");
const PHONE = { width: 375, height: 667 };
const DESKTOP = { width: 1024, height: 768 };
const HEIGHT_MAX = 1_400;
const WANTED = process.argv[2] ?? "";

/** State, language, scheme. */
const PICTURES = [
  ...Object.keys(EMBEDDED_STATES).map((state) => [state, "en", "light"] as const),
  ["mistakes", "ar", "light"],
] as const;

await using stage = await setUpEmbeddedStates();
const browser = await launchChromium();
mkdirSync(FOLDER, { recursive: true });

async function take(
  name: string,
  viewport: typeof PHONE,
  colorScheme: "light" | "dark",
  /** Gives the page that is shown: this one, or a window that it has opened. */
  show: (page: Page) => Promise<Page>,
): Promise<void> {
  if (!new RegExp(WANTED).test(name)) return;
  const context = await browser.newContext({ viewport, colorScheme, reducedMotion: "reduce" });
  const page = await show(await context.newPage());
  // A window has the size that its frame asked for.
  await page.setViewportSize(viewport);
  // The frame has told its size, and the page has taken it.
  await page.evaluate("new Promise((resolve) => setTimeout(resolve, 300))");
  const long = Number(await page.evaluate("document.documentElement.scrollHeight"));
  const clip = { x: 0, y: 0, width: viewport.width, height: Math.min(long, HEIGHT_MAX) };
  writeFileSync(join(FOLDER, `${name}.png`), shrinkPng(await page.screenshot({ fullPage: true, clip })));
  await context.close();
  console.log(name);
}

try {
  for (const [state, language, scheme] of PICTURES)
    await take(`${state}-${language}-${scheme}-phone`, PHONE, scheme, async (page) => {
      await EMBEDDED_STATES[state]?.(page, stage, language);
      return page;
    });
  for (const [state, show] of Object.entries(WINDOW_STATES))
    await take(`${state}-en-light-phone`, PHONE, "light", async (page) => await show(page, stage, "en"));
  await take("dialog-en-light-desktop", DESKTOP, "light", async (page) => {
    await page.goto(stage.app.origin);
    const session = await stage.embedded.create({ blueprint_keys: ["two"], locale: "en" });
    await openFlow(page, session, { isInline: false });
    await toldOf(page, "opened");
    return page;
  });
} finally {
  await browser.close();
}
