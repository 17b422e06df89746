/** Every state of the embedded flow in a real Chromium: accessible to all, with every kind of field. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { Browser, Frame, Page } from "playwright-core";
import { en } from "#hosted/texts/en.ts";
import { must } from "#lib/assert.ts";
import { launchChromium } from "./chromium.ts";
import { openFlow, openVisitor, toldOf } from "./embed-stage.ts";
import { GOOD } from "./embedded-setup.ts";
import {
  EMBEDDED_STATES,
  setUpEmbeddedStates,
  WINDOW_STATES,
  type EmbeddedStage,
} from "./embedded-states.ts";
import { axeLightAndDark, beyondSides } from "../axe.ts";
import { inTier } from "../tiers.ts";

const NARROW = { width: 320, height: 640 };
const PHONES = [NARROW, { width: 375, height: 667 }];

let browser: Browser;
let stage: EmbeddedStage;

before(async () => {
  stage = await setUpEmbeddedStates();
  browser = await launchChromium();
});
after(async () => {
  await browser?.close();
  await stage?.[Symbol.asyncDispose]();
});

/** What is said of an answer that is no 200, and of none, is said of every state of a mistake. */
const ofMistakes = (complaint: string): boolean => !complaint.startsWith("Failed to load resource");

async function assertAccessible(page: Page, inside: Page | Frame, language: string): Promise<void> {
  assert.deepEqual(await axeLightAndDark(page, inside), [], language);
  for (const phone of PHONES) {
    // A window is as large as the frame asked for.
    await page.setViewportSize(phone);
    assert.deepEqual(await beyondSides(inside), [], `${language}, ${phone.width} px`);
  }
}

/** What frames and windows say in English, heading by heading. */
const headings = new Set<string>();

for (const [state, show] of Object.entries({ ...EMBEDDED_STATES, ...WINDOW_STATES })) {
  test(`axe finds nothing, and nothing is wider than the screen of a phone: ${state}, English and Arabic, light and dark`, async () => {
    for (const language of inTier(["en", "ar"], (each) => each === "en" || state === "window-refused")) {
      await using visitor = await openVisitor(browser, { viewport: NARROW, reducedMotion: "reduce" });
      const { page, complaints } = visitor;
      const shown = await show(page, stage, language);
      assert.equal(await shown.locator("html").getAttribute("lang"), language);
      if (language === "en")
        for (const heading of await shown.locator("h1, h2").allInnerTexts()) headings.add(heading.trim());
      const [inside, own] = "frames" in shown ? [shown, shown] : [must(page.frames()[1], "the frame"), page];
      await assertAccessible(own, inside, language);
      assert.deepEqual(complaints.filter(ofMistakes), []);
    }
  });
}

test("every state that has a heading of its own was looked at", () => {
  const isOfFrames = (key: string): boolean =>
    /^(frame|picker|window|offline|problem|success|stale|typed)_/.test(key);
  const missed = Object.entries(en)
    .filter(([key]) => key.endsWith("_heading") && isOfFrames(key))
    .filter(([, heading]) => typeof heading === "string" && !headings.has(heading));
  assert.deepEqual(missed, []);
});

test("an answer that can't tell the sender is shown below the one that the frame began with, in their colour", async () => {
  await using visitor = await openVisitor(browser);
  const frame = await must(EMBEDDED_STATES["problem"], "the state")(visitor.page, stage, "en");
  assert.match(await frame.locator("main .brand").innerText(), /Acme Bookkeeping/);
  const filled = await frame
    .locator("body")
    .evaluate("getComputedStyle(document.querySelector('main button')).backgroundColor");
  assert.equal(filled, "rgb(31, 111, 84)");
});

test("a frame that waits in vain can be closed", async () => {
  await using visitor = await openVisitor(browser);
  const { page } = visitor;
  const frame = await must(EMBEDDED_STATES["loading"], "the state")(page, stage, "en");
  await frame.getByRole("button", { name: "Close" }).click();
  assert.deepEqual(await toldOf(page, "exited"), { at_view: null, reason: "cancelled" });
});

test("axe finds nothing in a page that the frame is a dialog of", async () => {
  await using visitor = await openVisitor(browser, { viewport: NARROW });
  const { page } = visitor;
  await page.goto(stage.app.origin);
  const session = await stage.embedded.create();
  await openFlow(page, session, { isInline: false });
  await toldOf(page, "opened");
  await assertAccessible(page, page, "en");
});

test("without script the frame says what it needs, and nothing of it waits forever", async () => {
  await using visitor = await openVisitor(browser, { javaScriptEnabled: false });
  const { page } = visitor;
  const { embed_url } = await stage.embedded.create({ locale: "de" });
  // Shown by itself, as it was answered: where a frame of another process runs no script, nobody can look into it from here.
  const body = await (await fetch(embed_url)).text();
  await page.route(embed_url, async (route) => await route.fulfill({ contentType: "text/html", body }));
  await page.goto(embed_url);
  await page.locator("noscript p").waitFor();
  assert.match(await page.locator("noscript p").innerText(), /^Dieses Formular braucht JavaScript/);
  assert.equal(await page.locator("#frame").isVisible(), false);
});

test("a field of every type is filled in, kept through a mistake, and saved", async () => {
  await using visitor = await openVisitor(browser, { locale: "de-AT" });
  const { page, complaints } = visitor;
  await page.goto(stage.app.origin);
  const session = await stage.embedded.create({ blueprint_keys: ["every"] });
  const frame = await openFlow(page, session, { isInline: false });
  await frame.getByLabel("E-Mail-Adresse").fill(GOOD.email);
  await frame.getByLabel("Passwort", { exact: true }).fill(GOOD.password);
  await frame.getByLabel("Region").selectOption("us");
  await frame.locator("form > details.more > summary").click();
  await frame.getByLabel("Notizen").fill("\n one\ntwo ");
  await frame.locator("input[name='extra.1.name']").fill("X-Api-Key");
  await frame.locator("input[name='extra.1.value']").fill("secret");
  await frame.getByLabel("Client-Zertifikat").setInputFiles({
    name: "client.pem",
    mimeType: "application/x-pem-file",
    buffer: Buffer.from("-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n"),
  });
  await frame.getByRole("button", { name: "Verbinden" }).click();
  await frame.getByRole("link", { name: /Häkchen: Ich darf dieses Konto verbinden/ }).waitFor();
  assert.deepEqual(await toldOf(page, "field_error"), { fields: ["consent"] });
  assert.equal(await frame.getByLabel("Notizen").inputValue(), "\n one\ntwo ");
  assert.equal(await frame.locator("input[name='extra.1.value']").inputValue(), "");
  await frame.getByLabel("Passwort", { exact: true }).fill(GOOD.password);
  await frame.locator("input[name='extra.1.value']").fill("again");
  await frame.getByLabel("Ich darf dieses Konto verbinden").check();
  await frame.getByRole("button", { name: "Verbinden" }).click();
  await toldOf(page, "completed");
  assert.equal((await stage.embedded.read(session.id)).status, "completed");
  assert.deepEqual(complaints, []);
});
