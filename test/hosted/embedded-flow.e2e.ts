/** The embedded flow in a real Chromium that keeps third-party cookies from everybody: widget, frame, page and service. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { gzipSync } from "node:zlib";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Browser, BrowserContextOptions, FrameLocator, Page } from "playwright-core";
import { must } from "#lib/assert.ts";
import {
  allowThirdPartyCookies,
  blockThirdPartyCookies,
  findProgram,
  launch,
  openProfile,
  type Program,
} from "./chromium.ts";
import {
  hostPage,
  kinds,
  openFlow,
  openVisitor,
  readWidget,
  type Site,
  startSite,
  told,
  toldOf,
  until,
} from "./embed-stage.ts";
import { GOOD, setUpEmbedded, type Embedded } from "./embedded-setup.ts";
import { listen } from "./hosted-setup.ts";

const DONE = { name: "Your login is saved" };
const WIDGET_BYTES_MAX = 6 * 1_024;

let app: Site;
let embedded: Embedded;
let program: Program;
let browser: Browser;
let integrity: string;
let widget: string;

before(async () => {
  app = await startSite("localhost");
  embedded = await setUpEmbedded({ origins: [app.origin] });
  ({ script: widget, integrity } = await readWidget(embedded.service.url));
  app.pages.set("/", hostPage(embedded.service.url, integrity));
  program = await findProgram();
  browser = await launch(program);
});
after(async () => {
  await browser?.close();
  program?.remove();
  await embedded?.[Symbol.asyncDispose]();
  app?.close();
});

async function visit(options: BrowserContextOptions = {}) {
  const visitor = await openVisitor(browser, options);
  await blockThirdPartyCookies(visitor.page);
  await visitor.page.goto(app.origin);
  return visitor;
}

async function fillIn(frame: FrameLocator, values = GOOD): Promise<void> {
  await frame.getByLabel("Email address").fill(values.email);
  await frame.getByLabel("Password", { exact: true }).fill(values.password);
  await frame.getByRole("button", { name: "Connect" }).click();
}

test("third-party cookies are really blocked here: a frame of another site neither sends nor sees one", async () => {
  const sent: (string | undefined)[] = [];
  const other = await listen((request, response) => {
    if (request.url === "/asked") sent.push(request.headers.cookie);
    response.setHeader("set-cookie", "kept=1; SameSite=None; Secure").end();
  });
  app.pages.set("/around", { html: `<!doctype html><iframe src="${other.origin}"></iframe>` });
  const assertSent = async (page: Page, cookie: string | undefined): Promise<void> => {
    // What the site has set as a page of its own counts no more than what it sets in the frame.
    for (const url of [`${app.origin}/around`, other.origin, `${app.origin}/around`])
      await page.goto(url, { waitUntil: "load" });
    const frame = must(page.frames()[1], "the frame of another site");
    await frame.evaluate("fetch('/asked', { credentials: 'include' }).then((answer) => answer.text())");
    assert.equal(sent.at(-1), cookie);
    assert.equal(await frame.evaluate("document.cookie"), cookie ?? "");
    assert.equal((await page.context().cookies()).length, 1, "its own page set one");
  };
  const folder = mkdtempSync(join(tmpdir(), "latchkey-profile-"));
  try {
    // A browser that lets them pass shows that this would be seen.
    allowThirdPartyCookies(folder);
    await using allowing = await openProfile(program, folder);
    await assertSent(must(allowing.pages()[0], "the first page"), "kept=1");
    await using visitor = await openVisitor(browser);
    await blockThirdPartyCookies(visitor.page);
    await assertSent(visitor.page, undefined);
  } finally {
    other.close();
    rmSync(folder, { recursive: true, force: true });
  }
});

test("the widget is one small script that any page may load and pin, and its documentation has its hash", async () => {
  assert.ok(gzipSync(widget).length <= WIDGET_BYTES_MAX, `${gzipSync(widget).length} bytes`);
  const { headers } = await fetch(`${embedded.service.url}/embed/v1/latchkey.js`);
  assert.equal(headers.get("access-control-allow-origin"), "*");
  assert.equal(headers.get("cross-origin-resource-policy"), "cross-origin");
  const documentation = readFileSync(new URL("../../docs/embedded.md", import.meta.url), "utf8");
  assert.ok(documentation.includes(integrity), `docs/embedded.md must have ${integrity}`);
  // No message is for anybody, and nothing is kept where another page could find it.
  const base = embedded.service.url;
  const frame = await (await fetch((await embedded.create()).embed_url)).text();
  const scripts = [widget];
  for (const name of ["frame.js", "frame-messages.js", "form.js"]) {
    const path = /src="([^"]*)frame\.js"/.exec(frame)?.[1] ?? "";
    scripts.push(await (await fetch(`${base}${path}${name}`)).text());
  }
  for (const script of scripts) {
    assert.ok(script.length > 500);
    assert.doesNotMatch(script, /["'`]\*["'`]|(local|session)Storage|indexedDB|document\.cookie/);
  }
});

/** What the frame's site keeps in the browser: nothing, where the browser keeps its stores from frames of other sites. */
const KEPT = `[...["localStorage", "sessionStorage"].map((name) => {
  try {
    return window[name].length;
  } catch (error) {
    if (error.name === "SecurityError") return 0;
    throw error;
  }
}), document.cookie]`;

test("in the page: mistakes, then done; the page is told each step and no secret, and the API says the same", async () => {
  const session = await embedded.create();
  await using visitor = await visit();
  const { page, complaints, requested } = visitor;
  const heard: string[] = [];
  await page
    .context()
    .addInitScript('addEventListener("message", ({ data }) => console.log("heard " + JSON.stringify(data)))');
  page.on("console", (message) => heard.push(message.text()));
  await page.reload();
  const frame = await openFlow(page, session);
  await fillIn(frame, { email: "ada at acme", password: "tiny-secret" });
  await frame.getByRole("alert").waitFor();
  assert.equal(await frame.getByLabel("Email address").inputValue(), "ada at acme");
  assert.deepEqual(await toldOf(page, "field_error"), { fields: ["email", "password"] });
  await fillIn(frame);
  await frame.getByRole("heading", DONE).waitFor();
  const completed = await toldOf(page, "completed");
  const now = await embedded.read(session.id);
  assert.deepEqual(completed, {
    session_id: session.id,
    credential_id: now.credential_id,
    credential_ids: now.credential_ids,
    blueprint_key: "one",
  });
  const { events, calls, said } = await told(page);
  assert.deepEqual(kinds(events), [
    "ready",
    "opened",
    "submitted",
    "field_error",
    "submitted",
    "view_changed",
    "completed",
  ]);
  assert.deepEqual(
    calls.map(([name]) => name),
    ["ready", "completed"],
  );
  const shape = ["source", "v", "session_id", "nonce", "seq", "type", "payload"];
  for (const [index, { from, data }] of said.entries()) {
    assert.equal(from, embedded.service.url);
    assert.deepEqual(Object.keys(data), shape);
    assert.deepEqual(
      [data.source, data.v, data.session_id, data.seq],
      ["latchkey", 1, session.id, index + 1],
    );
  }
  // Everything that frame and page heard: the token once, by the frame; what was typed never.
  const all = heard.join("\n");
  assert.ok(heard.length > said.length);
  for (const secret of [GOOD.email, GOOD.password, "tiny-secret", "ada at acme"])
    assert.ok(!all.includes(secret));
  assert.equal(all.split(session.client_token).length - 1, 1);
  assert.ok(!JSON.stringify(said).includes(session.client_token));
  // No address has the token, and nothing is kept in the browser.
  assert.ok(!requested.join("\n").includes(session.client_token));
  assert.deepEqual(await page.frames()[1]?.evaluate(KEPT), [0, 0, ""]);
  assert.deepEqual(await page.context().cookies(), []);
  assert.deepEqual(
    complaints.filter((text) => !text.startsWith("heard")),
    [],
  );
});

test("as a dialog: it has the focus, Escape and Cancel end it, and the focus goes back", async () => {
  const session = await embedded.create();
  await using visitor = await visit();
  const { page, complaints } = visitor;
  for (const end of ["escape", "cancelled", "crossed", "closed", "destroyed"]) {
    await page.locator("#go").focus();
    const frame = await openFlow(page, session, { isInline: false });
    await frame.getByRole("heading", { name: "Connect Northwind Portal" }).waitFor();
    // The page behind it can't be reached by keyboard: from the frame the focus never comes to its button.
    for (let step = 0; step < 12; step++) {
      await page.keyboard.press("Tab");
      assert.notEqual(await page.evaluate("document.activeElement.id"), "go");
    }
    if (end === "escape") await frame.getByLabel("Email address").press("Escape");
    if (end === "cancelled") await frame.getByRole("button", { name: "Cancel" }).click();
    if (end === "crossed") await frame.getByRole("button", { name: "Close" }).click();
    if (end === "closed") await page.evaluate("handles.at(-1).handle.close()");
    if (end === "destroyed") await page.evaluate("handles.at(-1).handle.destroy()");
    else {
      const reason = end === "crossed" ? "cancelled" : end;
      assert.deepEqual(await toldOf(page, "exited"), { at_view: "form", reason });
    }
    await page.locator("dialog").waitFor({ state: "detached" });
    assert.equal(await page.evaluate("document.activeElement.id"), "go");
    assert.equal(await page.evaluate("document.documentElement.style.overflow"), "");
  }
  // It is still there to be done, and the dialog goes by itself.
  await fillIn(await openFlow(page, session, { isInline: false }));
  await toldOf(page, "completed");
  await page.locator("dialog").waitFor({ state: "detached" });
  assert.equal((await embedded.read(session.id)).status, "completed");
  assert.deepEqual(kinds((await told(page)).events).at(-1), "completed");
  assert.deepEqual(complaints, []);
});

test("picker and two slots: one can choose anew until something is saved; text survives another language", async () => {
  const session = await embedded.create({ blueprint_keys: ["one", "two"], locale: "de-AT" });
  await using visitor = await visit({ locale: "fr" });
  const { page, complaints } = visitor;
  const frame = await openFlow(page, session, { theme: "dark" });
  await frame.getByRole("heading", { name: "Was möchten Sie verbinden?" }).waitFor();
  await frame.getByRole("button", { name: "Supplier invoices" }).click();
  await frame.getByRole("button", { name: "Etwas anderes wählen" }).click();
  await frame.getByRole("button", { name: /Monthly closing.*Nordwind-Portal und Southgate Ledger/ }).click();
  await frame.getByText("Schritt 1 von 2").waitFor();
  await frame.getByLabel("Email address").fill(GOOD.email);
  await page.evaluate(`handles.at(-1).handle.setLocale("es-MX")`);
  await frame.getByText("Paso 1 de 2").waitFor();
  assert.equal(await frame.getByLabel("Email address").inputValue(), GOOD.email);
  await frame.locator("nav summary").click();
  await frame.getByRole("link", { name: "English" }).click();
  await frame.getByText("Step 1 of 2").waitFor();
  assert.equal(await frame.getByLabel("Email address").inputValue(), GOOD.email);
  const dark = await frame
    .locator("body")
    .evaluate("document.querySelector('body') && getComputedStyle(document.body).backgroundColor");
  assert.equal(dark, "rgb(25, 31, 41)");
  await page.evaluate(`handles.at(-1).handle.setTheme("light")`);
  await frame.locator("html[data-theme=light]").waitFor();
  await frame.getByLabel("Password", { exact: true }).fill(GOOD.password);
  await frame.getByRole("button", { name: "Connect" }).click();
  await frame.getByText("Step 2 of 2").waitFor();
  assert.equal(await frame.getByRole("button", { name: "Choose something else" }).count(), 0);
  await frame.getByLabel("Access token", { exact: true }).fill("tk_1");
  await frame.getByRole("button", { name: "Connect" }).click();
  const completed = await toldOf(page, "completed");
  assert.deepEqual(Object.keys(completed.credential_ids), ["portal", "ledger"]);
  assert.equal(completed.credential_id, completed.credential_ids.portal);
  const chosen = (await told(page)).events.filter(({ type }) => type === "blueprint_selected");
  assert.deepEqual(
    chosen.map(({ payload }) => payload.blueprint_key),
    ["one", "two"],
  );
  assert.deepEqual((await embedded.read(session.id)).credential_ids, completed.credential_ids);
  // Its own button takes the frame away, and nothing is told after the last event.
  await frame.getByRole("button", { name: "Done" }).click();
  await page.locator("iframe").waitFor({ state: "detached" });
  assert.equal(kinds((await told(page)).events).at(-1), "completed");
  assert.deepEqual(complaints, []);
});

test("double click, two tabs, reload, back, and a browser closed and opened again: one credential", async () => {
  const session = await embedded.create();
  {
    await using closed = await visit();
    const frame = await openFlow(closed.page, session);
    await frame.getByLabel("Email address").fill("somebody@else.example");
  }
  await using visitor = await visit();
  const first = visitor.page;
  const second = await first.context().newPage();
  await blockThirdPartyCookies(second);
  await second.goto(app.origin);
  for (const page of [first, second]) {
    await openFlow(page, session);
    await toldOf(page, "opened");
    // The page anew, and the same session in it; then the frame by itself.
    await page.reload();
    const frame = await openFlow(page, session);
    await frame.getByLabel("Email address").fill("before@reload.example");
    await page.frames()[1]?.evaluate("location.reload()");
    await until(page, "handles.at(-1).events.filter(({ type }) => type === 'opened').length === 2");
    assert.equal(await frame.getByLabel("Email address").inputValue(), "");
    await frame.getByLabel("Email address").fill(GOOD.email);
    await frame.getByLabel("Password", { exact: true }).fill(GOOD.password);
  }
  const history = Number(await second.evaluate("history.length"));
  for (const page of [second, first]) {
    await page.bringToFront();
    const button = page.frameLocator("iframe").getByRole("button", { name: "Connect" });
    await button.dblclick({ noWaitAfter: true });
    await page.frameLocator("iframe").getByRole("heading", DONE).waitFor();
    await toldOf(page, "completed");
    const done = (await told(page)).events.filter(({ type }) => type === "completed");
    assert.equal(done.length, 1);
  }
  const made = await embedded.count(
    `from credential join credential_session s on s.id = session_id where embedded_session_id = '${session.id}'`,
  );
  assert.equal(made, 1);
  // Nothing of the flow is in the way of the back button: it leads to where the page came from, without what was typed.
  assert.equal(Number(await second.evaluate("history.length")), history);
  await second.goto("about:blank");
  await second.goBack();
  const again = await openFlow(second, session);
  await again.getByRole("heading", { name: "This is already done" }).waitFor();
  assert.equal((await toldOf(second, "error")).code, "session_used");
});

test("the time is over while somebody types: nothing is saved, and the text is given back without secrets", async () => {
  const session = await embedded.create();
  await using visitor = await visit();
  const { page } = visitor;
  const frame = await openFlow(page, session);
  await frame.getByLabel("Email address").fill(GOOD.email);
  await frame.getByLabel("Password", { exact: true }).fill(GOOD.password);
  await embedded.setClock(`timestamptz '${session.expires_at}'`);
  try {
    await frame.getByRole("button", { name: "Connect" }).click();
    await frame.getByRole("heading", { name: "Your time to complete this has run out" }).waitFor();
    await frame.getByText(GOOD.email).waitFor();
    assert.ok(!(await frame.locator("body").innerHTML()).includes(GOOD.password));
    assert.equal((await toldOf(page, "error")).code, "session_expired");
    assert.deepEqual(await toldOf(page, "expired"), {});
    assert.deepEqual((await embedded.read(session.id)).credential_ids, {});
  } finally {
    await embedded.setClock();
  }
  // By itself, too, when its time comes: what had been typed is there.
  const short = await embedded.create();
  await embedded.setClock(`timestamptz '${short.expires_at}' - interval '1500 ms'`);
  try {
    const own = await openFlow(page, short);
    await own.getByLabel("Email address").fill("slow@acme.example");
    await embedded.setClock(`timestamptz '${short.expires_at}'`);
    await own.getByRole("heading", { name: "Your time to complete this has run out" }).waitFor();
  } finally {
    await embedded.setClock();
  }
});

test("a connection that is lost loses nothing that was typed", async () => {
  const session = await embedded.create();
  await using visitor = await visit();
  const { page } = visitor;
  await page.context().route("**/submit**", async (route) => await route.abort());
  const frame = await openFlow(page, session);
  await fillIn(frame);
  await frame.getByRole("alert").getByText("The connection was lost").waitFor();
  await frame.getByRole("alert").getByText("What you entered is still here").waitFor();
  const { code, recoverable } = await toldOf(page, "error");
  assert.deepEqual([code, recoverable], ["network", true]);
  assert.equal(await frame.getByLabel("Password", { exact: true }).inputValue(), GOOD.password);
  await page.context().unroute("**/submit**");
  await frame.getByRole("button", { name: "Connect" }).click();
  await frame.getByRole("heading", DONE).waitFor();
  // Before anything has come it is said as well, and the flow begins when it can.
  await page.context().route("**/view**", async (route) => await route.abort());
  const early = await openFlow(page, await embedded.create());
  await early.getByRole("heading", { name: "The connection was lost" }).waitFor();
  assert.equal(await early.getByText("What you entered is still here").count(), 0);
  await page.context().unroute("**/view**");
  await early.getByRole("button", { name: "Try again" }).click();
  await early.getByRole("heading", { name: "Connect Northwind Portal" }).waitFor();
  assert.deepEqual(await toldOf(page, "opened"), { view: "form" });
});
