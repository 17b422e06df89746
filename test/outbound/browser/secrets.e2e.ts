// A secret reaches a field of the strategy's hosts, and nothing else: no other page, no error, no output of the driver.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { lstatSync, mkdtempSync, readFileSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { inspect, promisify } from "node:util";
import type { Locator, Page } from "playwright-core";
import { BrowserError, type BrowserFailure } from "#outbound/browser/browser-error.ts";
import { fillSecret } from "#outbound/browser/fill-secret.ts";
import type { OpenBrowser } from "#outbound/browser/open-browser.ts";
import { Secret } from "#lib/secret.ts";
import { testInAll } from "../../tiers.ts";
import { openStage, prepareProgram, startSite, type Site } from "./stage.ts";

const CANARY = "canary-5d0e71a9";
/** Notes every value that any field of the document gets. */
const LISTENING =
  "<script>addEventListener('input', (e) => (window.had ??= []).push(e.target.value), true)</script>";
const FORM = `${LISTENING}<form><label>Password <input type="password" id="p"></label></form>`;

const PAGES: Readonly<Record<string, string>> = {
  "/login": FORM,
  "/foreign": FORM,
  "/textarea": "<label>Password <textarea></textarea></label>",
  "/closed": `<fieldset disabled><label>Password <input></label></fieldset><label>Read <input readonly></label>
    <label>Box <input type="checkbox"></label><p aria-label="Text">text</p>`,
  "/controlled": `<label>Password <input id="c"></label><script>
    const proto = Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, "value");
    let own = "";
    // As React does: the element's own property takes what script sets, and only an event with another value counts.
    Object.defineProperty(c, "value", { configurable: true, get: () => proto.get.call(c), set: (v) => { own = v; proto.set.call(c, v); } });
    c.addEventListener("input", () => { if (proto.get.call(c) !== own) window.state = proto.get.call(c); });
  </script>`,
  "/keys": `<label>Password <input id="k"></label><script>
    k.addEventListener("keydown", (e) => { e.preventDefault(); k.value += e.key; window.keys = (window.keys ?? "") + e.key; });
  </script>`,
  "/shadow": `<div id="host"></div><script>host.attachShadow({ mode: "open" }).innerHTML = "<label>Password <input></label>"</script>`,
};

interface Sites {
  readonly own: Site;
  readonly foreign: Site;
  readonly browser: OpenBrowser;
}

let sites: Sites;
const cleanUp: (() => Promise<void> | void)[] = [];

before(async () => {
  const context = { after: (step: () => Promise<void> | void) => void cleanUp.unshift(step) } as Parameters<
    typeof openStage
  >[0];
  const own = await startSite(context, PAGES);
  const nested = `<iframe src="${own.origin}/login"></iframe>`;
  const foreign = await startSite(context, { ...PAGES, "/nested": nested });
  const stage = await openStage(context);
  // Foreign documents are refused before a secret is at stake. Here they may be opened, and only the proof stands before them.
  sites = { own, foreign, browser: await stage.open({ hosts: [own.origin, foreign.origin] }) };
});
after(async () => {
  for (const step of cleanUp) await step();
});

async function openPage(path: string): Promise<Page> {
  const { page } = sites.browser;
  await page.goto(`${sites.own.origin}${path}`);
  return page;
}

const fill = async (field: Locator, how: "fill" | "type" = "fill", timeoutMs = 10_000): Promise<void> =>
  await fillSecret(new Secret(CANARY), { field, hosts: [sites.own.origin], how, timeoutMs });

/** Fails with this, and nothing of the error says the value. What is never there, or never ready, waits a short time. */
async function assertRefused(field: Locator, failure: BrowserFailure): Promise<void> {
  const timeoutMs = ["not_found", "not_editable"].includes(failure) ? 1_000 : 10_000;
  await assert.rejects(fill(field, "fill", timeoutMs), (error: unknown) => {
    assert.ok(error instanceof BrowserError);
    assert.equal(error.failure, failure, error.message);
    assert.equal(error.cause, undefined);
    assert.ok(!inspect(error, { depth: 9, showHidden: true }).includes(CANARY));
    return true;
  });
}

const FILLED: readonly (readonly [path: string, how: "fill" | "type"])[] = [
  ["/login", "fill"],
  ["/textarea", "fill"],
  ["/controlled", "fill"],
  ["/shadow", "fill"],
  ["/keys", "type"],
  ["/login", "type"],
];

test("a secret gets into plain and controlled fields, shadow roots, and fields that read keys", async () => {
  for (const [path, how] of FILLED) {
    const page = await openPage(path);
    const field = page.getByLabel("Password");
    await fill(field, how);
    assert.equal(await field.inputValue(), CANARY, `${path} ${how}`);
    if (path === "/controlled") assert.equal(await page.evaluate("window.state"), CANARY);
    if (path === "/keys") assert.equal(await page.evaluate("window.keys"), CANARY);
  }
});

test("disabled, read-only and other elements get none, and the error quotes nothing", async () => {
  const page = await openPage("/closed");
  await assertRefused(page.getByLabel("Password"), "not_editable");
  await assertRefused(page.getByLabel("Read"), "not_editable");
  await assertRefused(page.getByLabel("Box"), "secret_refused");
  await assertRefused(page.getByLabel("Text"), "not_editable");
  await assertRefused(page.getByLabel("Nothing"), "not_found");
  await assertRefused(page.locator("input"), "ambiguous");
});

test("frames of others get none, nor do own frames inside them or in a sandbox", async () => {
  const { own, foreign } = sites;
  const frame = (url: string): string => `<iframe src="${url}"></iframe>`;
  const cases: readonly (readonly [at: Site, html: string, isTaken: boolean])[] = [
    [own, frame(`${own.origin}/login`), true],
    [own, `<iframe srcdoc='${FORM.replaceAll("'", "&#39;")}'></iframe>`, true],
    [own, frame(`${foreign.origin}/login`), false],
    [foreign, frame(`${own.origin}/login`), false],
    [foreign, `<iframe srcdoc='${FORM.replaceAll("'", "&#39;")}'></iframe>`, false],
    [own, `<iframe sandbox="allow-scripts" src="${own.origin}/login"></iframe>`, false],
  ];
  const { page } = sites.browser;
  for (const [at, html, isTaken] of cases) {
    await page.goto(`${at.origin}/login`);
    await page.setContent(html);
    const field = page.frameLocator("iframe").getByLabel("Password");
    await field.waitFor();
    if (!isTaken) await assertRefused(field, "secret_refused");
    else await fill(field);
    assert.equal(await field.inputValue(), isTaken ? CANARY : "", html);
  }
  await page.goto(`${own.origin}/login`);
  await page.setContent(frame(`${foreign.origin}/nested`));
  const inner = page.frameLocator("iframe").frameLocator("iframe").getByLabel("Password");
  await inner.waitFor();
  await assertRefused(inner, "secret_refused");
  await page.goto(`${foreign.origin}/login`);
  await assertRefused(page.getByLabel("Password"), "secret_refused");
});

/** Navigates to the foreign form after some milliseconds, while the secret is being set. */
async function fillWhileLeaving(delayMs: number): Promise<string> {
  const { own, foreign } = sites;
  const page = await openPage("/login");
  await page.evaluate(
    `setTimeout(() => location = ${JSON.stringify(`${foreign.origin}/foreign`)}, ${delayMs})`,
  );
  const outcome = await fill(page.getByLabel("Password")).then(
    () => "set",
    (error: unknown) => (error instanceof BrowserError ? error.failure : "another error"),
  );
  await page.waitForURL(`${foreign.origin}/foreign`);
  assert.equal(
    await page.evaluate("JSON.stringify(window.had ?? null)"),
    "null",
    `after ${delayMs} ms: ${outcome}`,
  );
  assert.equal(await page.getByLabel("Password").inputValue(), "");
  assert.ok(own.asked.length > 0);
  return outcome;
}

test("a page that navigates away while its secret is set never has it", async () => {
  const outcomes = new Set<string>();
  for (const delayMs of [0, 3, 6, 12, 25, 50]) outcomes.add(await fillWhileLeaving(delayMs));
  assert.deepEqual(
    [...outcomes].filter((each) => !["set", "gone", "secret_refused"].includes(each)),
    [],
  );
});

testInAll("six navigations", "60 navigations to a hostile page never give it the secret", {}, async () => {
  const counts: Record<string, number> = {};
  for (let attempt = 0; attempt < 60; attempt++) {
    const outcome = await fillWhileLeaving(3 * attempt);
    counts[outcome] = (counts[outcome] ?? 0) + 1;
  }
  assert.deepEqual(
    Object.keys(counts).filter((each) => !["set", "gone", "secret_refused"].includes(each)),
    [],
  );
  assert.notEqual(counts["set"], 60, "some came too late");
});

test("a field that is replaced all the time by a look-alike is filled in, or gone", async () => {
  const page = await openPage("/login");
  await page.evaluate(`setInterval(() => { const next = p.cloneNode(); p.replaceWith(next); }, 1)`);
  for (let attempt = 0; attempt < 5; attempt++)
    await fill(page.getByLabel("Password")).catch((error: unknown) => {
      assert.ok(error instanceof BrowserError && error.failure === "gone", String(error));
      assert.ok(!inspect(error, { depth: 9, showHidden: true }).includes(CANARY));
    });
});

/** Ways for a fill to fail: what the page does, and the field. */
const FAILING: readonly (readonly [html: string, label: string])[] = [
  ...["disabled", "readonly", 'type="checkbox"', 'type="file"', 'type="submit"', "hidden"].map(
    (attribute) => [`<label>Password <input ${attribute}></label>`, "Password"] as const,
  ),
  ["<fieldset disabled><label>Password <input></label></fieldset>", "Password"],
  ['<p aria-label="Password">text</p>', "Password"],
  ['<select aria-label="Password"><option>a</select>', "Password"],
  ['<input aria-label="Password"><input aria-label="Password">', "Password"],
  ["<label>Other <input></label>", "Password"],
  ['<iframe sandbox="allow-scripts" srcdoc="<label>Password <input></label>"></iframe>', "Password"],
  // Gone, replaced or another document, as soon as somebody looks at the field.
  ...[
    "this.remove()",
    "this.replaceWith(this.cloneNode())",
    "this.disabled = true",
    "location.reload()",
  ].flatMap((does) =>
    ["focus", "pointerover"].map(
      (event) => [`<label>Password <input on${event}="${does}" autofocus></label>`, "Password"] as const,
    ),
  ),
];

/** Null: it has been deleted. */
function contentOf(path: string): Buffer | null {
  try {
    return readFileSync(path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return null;
    throw error;
  }
}

testInAll(
  "six of these ways",
  "a secret is in no error of 20 failing fills, and in no file that the browser or the driver writes",
  {},
  async (t) => {
    const stage = await openStage(t);
    const site = await startSite(t, PAGES);
    const browser = await stage.open({ hosts: [site.origin] });
    const told: string[] = [];
    assert.equal(FAILING.length, 20);
    for (const [html, label] of FAILING) {
      await browser.page.goto(`${site.origin}/login`);
      await browser.page.setContent(html);
      const field = html.includes("<iframe")
        ? browser.page.frameLocator("iframe").getByLabel(label)
        : browser.page.getByLabel(label);
      await browser
        .fillSecret(field, new Secret(CANARY), { how: "fill", timeoutMs: 500 })
        .catch((error: unknown) => told.push(inspect(error, { depth: 9, showHidden: true })));
    }
    // A field that did not fail to be filled in has the value, and then the files are looked through.
    await browser.page.goto(`${site.origin}/login`);
    await browser.fillSecret(browser.page.getByLabel("Password"), new Secret(CANARY), {
      how: "fill",
      timeoutMs: 10_000,
    });
    assert.ok(told.length >= 12, `${told.length} failed`);
    told.push(...browser.consoleErrors());
    for (const text of told) assert.ok(!text.includes(CANARY), text);
    let files = 0;
    for (const name of readdirSync(stage.folder, { recursive: true, encoding: "utf8" })) {
      const path = join(stage.folder, name);
      // The browser goes on with its own files meanwhile.
      const bytes = lstatSync(path, { throwIfNoEntry: false })?.isFile() === true ? contentOf(path) : null;
      if (bytes === null) continue;
      files++;
      for (const form of [Buffer.from(CANARY), Buffer.from(CANARY, "utf16le"), Buffer.from(btoa(CANARY))])
        assert.ok(!bytes.includes(form), path);
    }
    assert.ok(files > 3, `${files} files`);
  },
);

test("with the driver's variables set it prints nothing, writes nothing and keeps to the proxy", async (t) => {
  const folder = mkdtempSync(join(tmpdir(), "latchkey-driver-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const program = await prepareProgram(t);
  const { stdout, stderr } = await promisify(execFile)(
    process.execPath,
    [
      "--disable-warning=ExperimentalWarning",
      join(import.meta.dirname, "secret-process.ts"),
      program,
      CANARY,
    ],
    {
      env: {
        ...process.env,
        DEBUG: "pw:*",
        DEBUG_FILE: join(folder, "debug"),
        PWDEBUG: "console",
        PLAYWRIGHT_DISABLE_FORCED_CHROMIUM_PROXIED_LOOPBACK: "1",
      },
    },
  );
  assert.deepEqual(JSON.parse(stdout), { length: CANARY.length, trapped: 0 });
  assert.equal(stderr, "");
  assert.deepEqual(readdirSync(folder), []);
});
