/**
 * Takes the pictures of `docs/hosted-form.md`: every state of the hosted pages, at a service that is started for it, in a real
 * Chromium. `node scripts/run.mjs scripts/hosted-screenshots.ts [pattern of names]`.
 */
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { nameHosts } from "./name-hosts.ts";
import { shrinkPng } from "./small-png.ts";
import { launchChromium } from "../test/hosted/chromium.ts";
import { portalDocument } from "../test/hosted/hosted-setup.ts";
import { drawLogo, HOSTED_STATES, setUpStates } from "../test/hosted/hosted-states.ts";

const FOLDER = join(import.meta.dirname, "../docs/screenshots/hosted");
const PHONE = { width: 375, height: 667 };
const DESKTOP = { width: 1024, height: 768 };
/** Of a long page the beginning is enough, but of every kind of field. */
const HEIGHT_MAX = 1_400;
const WANTED = process.argv[2] ?? "";

/** State, language, scheme, screen. */
const PICTURES = [
  ...Object.keys(HOSTED_STATES).map((state) => [state, "en", "light", "phone"] as const),
  ["form", "en", "dark", "phone"],
  ["form", "en", "light", "desktop"],
  ["form", "en", "dark", "desktop"],
  ["errors", "en", "dark", "phone"],
  ["oauth", "de", "light", "desktop"],
  ["errors", "ar", "light", "phone"],
  ["success", "fr", "dark", "phone"],
] as const;

await using hosted = await setUpStates();
await hosted.installation.apply(
  JSON.stringify({ ...(JSON.parse(portalDocument) as object), logo_url: drawLogo(96, [36, 80, 184]) }),
);
const browser = await launchChromium();
mkdirSync(FOLDER, { recursive: true });
try {
  for (const [state, language, scheme, screen] of PICTURES) {
    const name = `${state}-${language}-${scheme}-${screen}`;
    if (!new RegExp(WANTED).test(name)) continue;
    const context = await browser.newContext({
      viewport: screen === "phone" ? PHONE : DESKTOP,
      colorScheme: scheme,
      reducedMotion: "reduce",
    });
    const page = await context.newPage();
    await HOSTED_STATES[state]?.(page, hosted, language);
    await nameHosts(page, "login.northwind.example");
    const { width } = page.viewportSize() ?? PHONE;
    const long = Number(await page.evaluate("document.documentElement.scrollHeight"));
    const height = state === "fields" ? long : Math.min(long, HEIGHT_MAX);
    const picture = await page.screenshot({ fullPage: true, clip: { x: 0, y: 0, width, height } });
    writeFileSync(join(FOLDER, `${name}.png`), shrinkPng(picture));
    await context.close();
    console.log(name);
  }
} finally {
  await browser.close();
}
