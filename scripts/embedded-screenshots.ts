/**
 * Takes the pictures of `docs/embedded.md`: states of the embedded flow in a customer's page, at a service that is started for
 * it, in a real Chromium. `node scripts/run.mjs scripts/embedded-screenshots.ts [pattern of names]`.
 */
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { nameHosts } from "./name-hosts.ts";
import { shrinkPng } from "./small-png.ts";
import { launchChromium } from "../test/hosted/chromium.ts";
import { must } from "#lib/assert.ts";
import { openFlow, toldOf, type Site } from "../test/hosted/embed-stage.ts";
import { EMBEDDED_STATES, setUpEmbeddedStates, WINDOW_STATES } from "../test/hosted/embedded-states.ts";

const FOLDER = join(import.meta.dirname, "../docs/screenshots/embedded");
const PHONE = { width: 375, height: 667 };
const DESKTOP = { width: 1024, height: 768 };
const HEIGHT_MAX = 1_400;
const WANTED = process.argv[2] ?? "";

const NAME = "<b>Acme Bookkeeping</b><nav>Invoices · Payments · <b>Connections</b></nav>";
const STYLE = `
  body { margin: 0; font: 1rem/1.5 system-ui, sans-serif; color: #1d2630; background: #eef3f0; }
  header { display: flex; flex-wrap: wrap; gap: 0 1.5rem; padding: .75rem 1rem; color: #fff; background: #163f32; }
  nav { font-size: .9375rem; opacity: .9; }
  main { max-width: 40rem; margin: 0 auto; padding: 1rem .75rem; }
  h1 { margin: 0 0 .75rem; font-size: 1.375rem; }
  #place { border: 1px solid #d5dfda; border-radius: .75rem; overflow: hidden; background: #fff; }
  #place:empty { display: none; }`;

/** State, language, scheme. */
const PICTURES = [
  ...Object.keys(EMBEDDED_STATES).map((state) => [state, "en", "light"] as const),
  ["mistakes", "ar", "light"],
  ["slot", "fr", "light"],
  ["slot", "en", "dark"],
] as const;

await using stage = await setUpEmbeddedStates();
dressHostPage(stage.app);
const browser = await launchChromium();
mkdirSync(FOLDER, { recursive: true });

/** As a customer's page looks, around the same frame. */
function dressHostPage({ pages }: Site): void {
  const plain = must(pages.get("/"), "the customer's page");
  const policy = must(plain.headers?.["content-security-policy"], "its policy");
  pages.set("/", {
    html: plain.html
      .replace(
        "<main><h1>Host</h1>",
        `<style>${STYLE}</style><header>${NAME}</header><main><h1>Connections</h1>`,
      )
      .replace('<button id="go">Go</button>', ""),
    headers: { "content-security-policy": `${policy}; style-src 'unsafe-inline'` },
  });
}

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
  await nameHosts(page, "login.contoso.example");
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
