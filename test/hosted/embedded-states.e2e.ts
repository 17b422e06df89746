/** Every state of the embedded flow in a real Chromium: accessible to all, with every kind of field. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, before, test } from "node:test";
import type { AxeResults } from "axe-core";
import type { Browser } from "playwright-core";
import { must } from "#lib/assert.ts";
import { launchChromium } from "./chromium.ts";
import { openFlow, openVisitor, toldOf } from "./embed-stage.ts";
import { GOOD } from "./embedded-setup.ts";
import { EMBEDDED_STATES, setUpEmbeddedStates, type EmbeddedStage } from "./embedded-states.ts";

const AXE = readFileSync(new URL(import.meta.resolve("axe-core/axe.min.js")), "utf8");
const WCAG = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"];
const NARROW = { width: 320, height: 640 };

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

for (const [state, show] of Object.entries(EMBEDDED_STATES)) {
  test(`axe finds nothing, and nothing scrolls sideways at 320 px: ${state}, English and Arabic, light and dark`, async () => {
    for (const language of ["en", "ar"]) {
      await using visitor = await openVisitor(browser, { viewport: NARROW, reducedMotion: "reduce" });
      const { page, complaints } = visitor;
      const frame = await show(page, stage, language);
      assert.equal(await frame.locator("html").getAttribute("lang"), language);
      const inside = must(page.frames()[1], "the frame");
      for (const colorScheme of ["light", "dark"] as const) {
        await page.emulateMedia({ colorScheme });
        const results = (await inside.evaluate(
          `${AXE};axe.run(document, { runOnly: ${JSON.stringify(WCAG)}, resultTypes: ["violations"] })`,
        )) as AxeResults;
        const found = results.violations.flatMap(({ id, nodes }) =>
          nodes.map((node) => `${id}: ${node.html}`),
        );
        assert.deepEqual(found, [], `${language} ${colorScheme}`);
      }
      const [shown, wide] = (await inside.evaluate(
        "[innerWidth, document.documentElement.scrollWidth]",
      )) as number[];
      assert.equal(wide, shown);
      assert.deepEqual(complaints, []);
    }
  });
}

test("a field of every type is filled in, kept through a mistake, and saved", async () => {
  await using visitor = await openVisitor(browser, { locale: "de-AT" });
  const { page, complaints } = visitor;
  await page.goto(stage.app.origin);
  const session = await stage.embedded.create({ blueprint_keys: ["every"] });
  const frame = await openFlow(page, session, { isInline: false });
  await frame.getByLabel("E-Mail-Adresse").fill(GOOD.email);
  await frame.getByLabel("Passwort", { exact: true }).fill(GOOD.password);
  await frame.getByLabel("Region").selectOption("us");
  await frame.getByLabel("Notes").fill("\n one\ntwo ");
  await frame.locator("input[name='extra.1.name']").fill("X-Api-Key");
  await frame.locator("input[name='extra.1.value']").fill("secret");
  await frame.getByLabel("Client certificate").setInputFiles({
    name: "client.pem",
    mimeType: "application/x-pem-file",
    buffer: Buffer.from("-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n"),
  });
  await frame.getByRole("button", { name: "Verbinden" }).click();
  await frame.getByRole("link", { name: /I may connect this account: Hier ist ein Häkchen/ }).waitFor();
  assert.deepEqual(await toldOf(page, "field_error"), { fields: ["consent"] });
  assert.equal(await frame.getByLabel("Notes").inputValue(), "\n one\ntwo ");
  assert.equal(await frame.locator("input[name='extra.1.value']").inputValue(), "");
  await frame.getByLabel("Passwort", { exact: true }).fill(GOOD.password);
  await frame.locator("input[name='extra.1.value']").fill("again");
  await frame.getByLabel("I may connect this account").check();
  await frame.getByRole("button", { name: "Verbinden" }).click();
  await toldOf(page, "completed");
  assert.equal((await stage.embedded.read(session.id)).status, "completed");
  assert.deepEqual(complaints, []);
});
