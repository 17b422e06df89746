/** Every state of the hosted pages in a real Chromium: accessible to all, and made better by script without needing it. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { Browser, BrowserContextOptions, Page } from "playwright-core";
import encodeQR from "qr";
import { en } from "#hosted/texts/en.ts";
import { launchChromium } from "./chromium.ts";
import { GOOD, type Hosted } from "./hosted-setup.ts";
import { HOSTED_STATES, setUpStates } from "./hosted-states.ts";
import { axe, axeLightAndDark, beyondSides } from "../axe.ts";
import { inTier } from "../tiers.ts";

const WAIT_MS = 20_000;
const NARROW = { width: 320, height: 568 };
const PHONES = [NARROW, { width: 375, height: 667 }];

let browser: Browser;
let hosted: Hosted;

before(async () => {
  hosted = await setUpStates();
  browser = await launchChromium();
});
after(async () => {
  await browser?.close();
  await hosted?.[Symbol.asyncDispose]();
});

/** A fresh profile's page. `requested` is everything that it asked for, `complaints` what the console said. */
async function openPage(options: BrowserContextOptions = {}) {
  const context = await browser.newContext(options);
  context.setDefaultTimeout(WAIT_MS);
  const page = await context.newPage();
  const requested: string[] = [];
  const complaints: string[] = [];
  page.on("request", (request) => requested.push(request.url()));
  page.on("pageerror", (error) => complaints.push(error.message));
  page.on("console", (message) => {
    // What Chromium says of an answer that is no 200 is said of every page of a mistake.
    if (message.type() === "error" && !/status of [45]/.test(message.text())) complaints.push(message.text());
  });
  return { page, requested, complaints, [Symbol.asyncDispose]: async () => await context.close() };
}

test("what looks for violations finds them", async () => {
  await using visitor = await openPage();
  const { page } = visitor;
  await HOSTED_STATES["unknown"]?.(page, hosted, "en");
  await page.evaluate(
    "document.querySelector('h1').style.color = '#bbb'; document.documentElement.lang = ''",
  );
  const found = await axe(page);
  const rules = new Set(found.map((each) => each.split(" at ", 1)[0]));
  assert.deepEqual(rules, new Set(["color-contrast", "html-has-lang"]));
});

/** What the pages say in English, heading by heading. */
const headings = new Set<string>();

const LOOKS = ["en", "ar"].flatMap((language) =>
  Object.entries(HOSTED_STATES).map(([state, show]) => ({ language, state, show })),
);
/** Every state once, and from right to left what has the most on it. */
const isRepresentative = ({ language, state }: (typeof LOOKS)[number]): boolean =>
  language === "en" || state === "errors";

for (const { language, state, show } of inTier(LOOKS, isRepresentative)) {
  test(`axe finds nothing, and nothing is wider than the screen of a phone: ${state}, ${language}, light and dark`, async () => {
    await using visitor = await openPage({ viewport: NARROW, reducedMotion: "reduce" });
    const { page, complaints } = visitor;
    await show(page, hosted, language);
    assert.equal(await page.locator("html").getAttribute("lang"), language);
    if (language === "en")
      for (const heading of await page.locator("h1, h2").allInnerTexts()) headings.add(heading);
    // What opens is looked at too.
    if ((await page.locator("nav summary").count()) > 0) await page.locator("nav summary").click();
    assert.deepEqual(await axeLightAndDark(page), []);
    for (const phone of PHONES) {
      await page.setViewportSize(phone);
      assert.deepEqual(await beyondSides(page), [], `${phone.width} px`);
    }
    assert.deepEqual(complaints, []);
  });
}

test("every page that has a heading of its own was looked at", () => {
  const isOfFrames = (key: string): boolean => /^(frame|picker|window|offline)_/.test(key);
  const missed = Object.entries(en)
    .filter(([key]) => key.endsWith("_heading") && !isOfFrames(key))
    .filter(
      ([, heading]) => typeof heading === "string" && !headings.has(heading.replace("{system}", "Northwind")),
    );
  assert.deepEqual(missed, []);
});

test("mistakes: the summary has the focus, its links lead to the fields, and each control says what is wrong with it", async () => {
  await using visitor = await openPage();
  const { page } = visitor;
  await HOSTED_STATES["errors"]?.(page, hosted, "en");
  assert.equal(await page.evaluate("document.activeElement.className"), "summary");
  for (const link of await page.getByRole("alert").getByRole("link").all()) {
    const id = String(await link.getAttribute("href")).slice(1);
    const control = page.locator(`[id="${id}"]`);
    const described = String(await control.getAttribute("aria-describedby")).split(" ");
    assert.ok(described.includes(`${id}-error`), id);
    assert.match(await page.locator(`[id="${id}-error"]`).innerText(), /^Error:/);
    // A group of rows is not invalid itself: its rows are.
    const group = control.locator("input[aria-invalid=true]");
    assert.ok((await control.getAttribute("aria-invalid")) === "true" || (await group.count()) > 0, id);
    await link.press("Enter");
    assert.equal(await page.evaluate("document.activeElement.id"), id);
  }
});

const TELL_WHEN_SENT = `document.querySelector("form.connect").addEventListener("submit", () => {
  const [button, status, password] = ["main button[type=submit]", ".sending", "[name=password]"].map((each) => document.querySelector(each));
  console.log("sending " + JSON.stringify([button.disabled, button.textContent, status.textContent, password.type]));
})`;

test("script shows a secret while it is typed, covers it before it is sent, and says that it is sent", async () => {
  const session = await hosted.session();
  await using visitor = await openPage();
  const { page, complaints } = visitor;
  await page.goto(session.hosted_url);
  const password = page.locator("input[name=password]");
  await page.locator("input[name=email]").fill(GOOD.email);
  await password.fill(GOOD.password);
  await page.getByRole("button", { name: "Show Password" }).click();
  assert.equal(await password.getAttribute("type"), "text");
  // What the page looks like while it is being sent, said by the page: the browser itself is busy leaving it.
  const told = page.waitForEvent("console", (message) => message.text().startsWith("sending "));
  await page.evaluate(TELL_WHEN_SENT);
  await page.locator("main button[type=submit]").click();
  assert.equal((await told).text(), 'sending [true,"Sending…","Sending…","password"]');
  await page.getByRole("heading", { name: "Your login is saved" }).waitFor();
  assert.equal(await hosted.credentialsOf(session.id), 1);
  assert.deepEqual(complaints, []);
});

test("an authenticator's key is read from a picture, in the browser, by a decoder that is loaded for it alone", async () => {
  const session = await hosted.session();
  await using visitor = await openPage();
  const { page, requested, complaints } = visitor;
  await page.goto(session.hosted_url);
  const link = "otpauth://totp/Northwind:ada?secret=JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP&issuer=Northwind";
  const picture = (text: string) => ({
    name: "qr.gif",
    mimeType: "image/gif",
    buffer: Buffer.from(encodeQR(text, "gif", { scale: 6 })),
  });
  assert.ok(!requested.some((url) => url.includes("qr-decode")));
  const chooser = page.locator(".picture input");
  const totp = page.locator("input[name=totp]");
  await chooser.setInputFiles(picture("https://evil.example"));
  await page.getByText("No QR code of an authenticator was found").waitFor();
  assert.equal(await totp.inputValue(), "");
  await chooser.setInputFiles(picture(link));
  await page.getByText("The key was read from the picture").waitFor();
  assert.equal(await totp.inputValue(), link);
  assert.ok(requested.some((url) => url.includes("qr-decode")));
  await page.locator("input[name=email]").fill(GOOD.email);
  await page.locator("input[name=password]").fill(GOOD.password);
  await page.locator("main button[type=submit]").click();
  await page.getByRole("heading", { name: "Your login is saved" }).waitFor();
  assert.deepEqual(
    requested.filter((url) => !url.startsWith(hosted.service.url)),
    [],
  );
  assert.deepEqual(complaints, []);
});

for (const javaScriptEnabled of [true, false]) {
  const how = javaScriptEnabled ? "with script" : "without script";
  test(`a field of every type is filled in and kept, in German, ${how}`, async () => {
    const session = await hosted.session({ strategy_id: "strat_every" });
    await using visitor = await openPage({ javaScriptEnabled, locale: "de-AT" });
    const { page, complaints } = visitor;
    await page.goto(session.hosted_url);
    await page.getByLabel("E-Mail-Adresse").fill(GOOD.email);
    await page.getByLabel("Passwort").fill(GOOD.password);
    await page.getByLabel("Region").selectOption("us");
    await page.locator("form > details.more > summary").click();
    await page.getByLabel("Notizen").fill("\n one\ntwo ");
    await fillHeaders(page, javaScriptEnabled);
    const pem = "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n";
    await page.getByLabel("Client-Zertifikat").setInputFiles({
      name: "client.pem",
      mimeType: "application/x-pem-file",
      buffer: Buffer.from(pem),
    });
    await page.getByRole("button", { name: "Verbinden" }).click();
    // One mistake: what was typed stays, and is sent again.
    await page.getByRole("link", { name: /Häkchen: Ich darf dieses Konto verbinden/ }).waitFor();
    assert.equal(await page.getByLabel("Notizen").inputValue(), "\n one\ntwo ");
    assert.equal(await page.getByLabel("Region").inputValue(), "us");
    assert.equal(await page.locator("input[name='extra.2.name']").inputValue(), "X-Shop");
    assert.equal(await page.locator("input[name='extra.2.value']").inputValue(), "");
    await page.getByLabel("Passwort").fill(GOOD.password);
    for (const row of [1, 2]) await page.locator(`input[name='extra.${row}.value']`).fill("again");
    await page.getByLabel("Ich darf dieses Konto verbinden").check();
    await page.getByRole("button", { name: "Verbinden" }).click();
    await page.getByRole("heading", { name: "Ihre Zugangsdaten sind gespeichert" }).waitFor();
    assert.equal(await hosted.credentialsOf(session.id), 1);
    assert.deepEqual(complaints, []);
  });
}

/** Two headers: with script rows are added and taken away one at a time, without it they stand there. */
async function fillHeaders(page: Page, isScripted: boolean): Promise<void> {
  const name = (row: number) => page.locator(`input[name='extra.${row}.name']`);
  if (isScripted) {
    assert.equal(await name(2).isVisible(), false);
    const another = page.getByRole("button", { name: "Noch eine Zeile" });
    await another.click();
    assert.equal(await page.evaluate("document.activeElement.name"), "extra.2.name");
    await page.getByRole("button", { name: "Zeile 2 entfernen" }).click();
    assert.equal(await name(2).isVisible(), false);
    for (let row = 2; row <= 10; row += 1) await another.click();
    assert.equal(await another.isVisible(), false);
  } else {
    assert.equal(await name(3).isVisible(), true);
    assert.equal(await name(4).isVisible(), false);
    await page.getByText("Weitere hinzufügen").click();
    assert.equal(await name(10).isVisible(), true);
  }
  for (const [row, header] of [
    [1, "X-Api-Key"],
    [2, "X-Shop"],
  ] as const) {
    await name(row).fill(header);
    await page.locator(`input[name='extra.${row}.value']`).fill("secret");
  }
}

test("a language is chosen without script, by the keyboard, and stays through a mistake", async () => {
  const session = await hosted.session();
  await using visitor = await openPage({ javaScriptEnabled: false, locale: "sv" });
  const { page } = visitor;
  await page.goto(session.hosted_url);
  await page.keyboard.press("Tab");
  await page.keyboard.press("Enter");
  await page.getByRole("link", { name: "العربية" }).press("Enter");
  await page.getByRole("heading", { name: /^ربط/ }).waitFor();
  assert.equal(await page.evaluate("getComputedStyle(document.body).direction"), "rtl");
  await page.locator("main button[type=submit]").click();
  await page.getByRole("alert").getByText("هذا الحقل مطلوب").first().waitFor();
  assert.equal(await page.locator("html").getAttribute("lang"), "ar");
});

test("two tabs: the second sees what the first did; a browser that was closed opens the link anew", async () => {
  const session = await hosted.session();
  {
    await using closed = await openPage();
    await closed.page.goto(session.hosted_url);
    await closed.page.locator("input[name=email]").fill("somebody@else.example");
  }
  await using visitor = await openPage();
  const first = visitor.page;
  const second = await first.context().newPage();
  for (const page of [first, second]) {
    await page.goto(session.hosted_url);
    await page.reload();
    assert.equal(await page.locator("input[name=email]").inputValue(), "");
    await page.locator("input[name=email]").fill(GOOD.email);
    await page.locator("input[name=password]").fill(GOOD.password);
  }
  for (const page of [first, second]) {
    await page.locator("main button[type=submit]").click();
    await page.getByRole("heading", { name: "Your login is saved" }).waitFor();
  }
  assert.equal(await hosted.credentialsOf(session.id), 1);
});
