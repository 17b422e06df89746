/** The hosted form in a real Chromium, from the link to the page that the end user returns to, each on a real server. */
import assert from "node:assert/strict";
import type { IncomingMessage } from "node:http";
import { after, before, test } from "node:test";
import type { Browser, BrowserContextOptions, Page } from "playwright-core";
import { axeLightAndDark } from "../axe.ts";
import { launchChromium } from "./chromium.ts";
import { acmeDocument, GOOD, listen, setUpHosted, type Hosted } from "./hosted-setup.ts";

const WAIT_MS = 10_000;
const TITLE = /^Connect Northwind Portal$/;

interface Visit {
  readonly path: string;
  readonly referer: string | undefined;
}

/** A customer's application: by its name on another site than the service, and a further one that it may redirect to. */
let application: { readonly origin: string; readonly visits: readonly Visit[] };
let elsewhere: { readonly origin: string; readonly visits: readonly Visit[] };
let browser: Browser;
let hosted: Hosted;
const closers: (() => unknown)[] = [];

before(async () => {
  elsewhere = await startSite((address) => address);
  // `localhost` and `127.0.0.1` are different sites to a browser.
  application = await startSite((address) => address.replace("127.0.0.1", "localhost"));
  hosted = await setUpHosted();
  closers.push(async () => await hosted[Symbol.asyncDispose]());
  await hosted.installation.apply(acmeDocument([application.origin]));
  browser = await launchChromium();
  closers.push(async () => await browser.close());
});
after(async () => {
  for (const close of closers.toReversed()) await close();
});

async function startSite(name: (address: string) => string) {
  const visits: Visit[] = [];
  const server = await listen((request: IncomingMessage, response) => {
    const path = request.url ?? "";
    if (path === "/favicon.ico") return void response.writeHead(204).end();
    visits.push({ path, referer: request.headers.referer });
    if (path.startsWith("/hop")) {
      return void response
        .writeHead(302, { location: `${elsewhere.origin}/landed${path.slice("/hop".length)}` })
        .end();
    }
    response
      .setHeader("content-type", "text/html")
      .end(pages.get(path) ?? "<!doctype html><title>Landed</title>");
  });
  closers.push(() => server.close());
  return { origin: name(server.origin), visits };
}

/** Pages of the application that a test puts there. */
const pages = new Map<string, string>();

/** A fresh profile's page; `complaints` is what the console said, policy violations among it, and what did not load. */
async function openPage(options: BrowserContextOptions = {}) {
  const context = await browser.newContext(options);
  context.setDefaultTimeout(WAIT_MS);
  const page = await context.newPage();
  const complaints: string[] = [];
  page.on("console", (message) => {
    if (["error", "warning"].includes(message.type())) complaints.push(message.text());
  });
  page.on("pageerror", (error) => complaints.push(error.message));
  page.on("requestfailed", (request) => complaints.push(`${request.url()}: ${request.failure()?.errorText}`));
  return { page, complaints, [Symbol.asyncDispose]: async () => await context.close() };
}

async function fillIn(
  page: Page,
  values: { readonly email: string; readonly password: string } = GOOD,
): Promise<void> {
  await page.getByLabel("Email address").fill(values.email);
  await page.getByLabel("Password").fill(values.password);
  await page.getByRole("button", { name: "Connect" }).click();
}

const lastVisit = (site: { readonly visits: readonly Visit[] }): Visit | undefined => site.visits.at(-1);

for (const javaScriptEnabled of [true, false]) {
  const how = javaScriptEnabled ? "" : " with JavaScript disabled";

  test(`the form is filled in and leads to return_url on another origin, session_id in its query${how}`, async () => {
    const session = await hosted.session({ return_url: `${application.origin}/back?state=a%20b&n=1#part` });
    await using visitor = await openPage({ javaScriptEnabled });
    const { page, complaints } = visitor;
    await page.goto(session.hosted_url);
    assert.match(await page.title(), TITLE);
    await fillIn(page);
    await page.waitForURL(`${application.origin}/**`);
    assert.equal(page.url(), `${application.origin}/back?state=a%20b&n=1&session_id=${session.id}#part`);
    assert.deepEqual(lastVisit(application), {
      path: `/back?state=a%20b&n=1&session_id=${session.id}`,
      // The link is a secret: the page that is returned to never learns it.
      referer: undefined,
    });
    if (javaScriptEnabled) assert.equal(await page.evaluate("document.referrer"), "");
    assert.equal((await hosted.read(session.id)).status, "completed");
    assert.deepEqual(complaints, []);
  });

  test(`a return page that itself redirects to a third origin is followed${how}`, async () => {
    const session = await hosted.session({ return_url: `${application.origin}/hop?x=1` });
    await using visitor = await openPage({ javaScriptEnabled });
    const { page, complaints } = visitor;
    await page.goto(session.hosted_url);
    await fillIn(page);
    await page.waitForURL(`${elsewhere.origin}/**`);
    assert.equal(page.url(), `${elsewhere.origin}/landed?x=1&session_id=${session.id}`);
    assert.equal(lastVisit(elsewhere)?.referer, undefined);
    assert.equal((await hosted.read(session.id)).status, "completed");
    assert.deepEqual(complaints, []);
  });

  test(`without a return_url the success page is shown, and the link says that it was used${how}`, async () => {
    const session = await hosted.session();
    await using visitor = await openPage({ javaScriptEnabled });
    const { page, complaints } = visitor;
    await page.goto(session.hosted_url);
    await fillIn(page);
    await page.getByRole("heading", { name: "Your login is saved" }).waitFor();
    assert.equal(page.url(), session.hosted_url);
    assert.deepEqual(complaints, []);
    await page.goto(session.hosted_url);
    await page.getByRole("heading", { name: "This link has already been used" }).waitFor();
    assert.equal(await page.locator("form").count(), 0);
  });

  test(`mistakes are shown beside their fields and keep what was typed, but never the secret${how}`, async () => {
    const session = await hosted.session({ return_url: `${application.origin}/back` });
    await using visitor = await openPage({ javaScriptEnabled });
    const { page } = visitor;
    await page.goto(session.hosted_url);
    await fillIn(page, { email: "ada at acme", password: "tiny" });
    await page.getByRole("alert").waitFor();
    assert.match(await page.title(), /^Error: /);
    const [email, password] = [page.getByLabel("Email address"), page.getByLabel("Password")];
    assert.equal(await email.inputValue(), "ada at acme");
    assert.equal(await password.inputValue(), "");
    assert.ok(!(await page.content()).includes("tiny"));
    for (const [control, says] of [
      [email, /email address like/],
      [password, /at least 12 characters/],
    ] as const) {
      assert.equal(await control.getAttribute("aria-invalid"), "true");
      const described = String(await control.getAttribute("aria-describedby")).split(" ");
      const texts = await Promise.all(described.map(async (id) => await page.locator(`#${id}`).innerText()));
      assert.match(texts.join(" "), says);
    }
    // The summary's link leads to the control.
    await page.getByRole("alert").getByRole("link").first().click();
    await page.locator("input[name=email]:focus").waitFor();
    await fillIn(page);
    await page.waitForURL(`${application.origin}/**`);
    assert.equal(await hosted.credentialsOf(session.id), 1);
  });
}

test("the keyboard alone is enough", async () => {
  const session = await hosted.session();
  await using visitor = await openPage();
  const { page } = visitor;
  await page.goto(session.hosted_url);
  // The language comes first, then the form.
  await page.keyboard.press("Tab");
  for (const text of [GOOD.email, GOOD.password]) {
    await page.keyboard.press("Tab");
    await page.keyboard.type(text);
  }
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: "Your login is saved" }).waitFor();
});

test("in another language what was typed is there again, but no secret; nothing was sent but that", async () => {
  const session = await hosted.session();
  await using visitor = await openPage();
  const { page, complaints } = visitor;
  const bodies: string[] = [];
  page.on("request", (request) => {
    if (request.method() === "POST") bodies.push(request.postData() ?? "");
  });
  await page.goto(session.hosted_url);
  await page.getByLabel("Email address").fill("ada at acme & <b>");
  await page.getByLabel("Password").fill(GOOD.password);
  // As it is sent when it is shown, it is a secret still.
  await page.getByRole("button", { name: "Show Password" }).click();
  for (const [language, heading] of [
    ["Deutsch", /Northwind Portal verbinden/],
    ["Polski", /Northwind Portal/],
  ] as const) {
    await page.locator(".languages summary").click();
    await page.getByRole("link", { name: language }).click();
    await page.getByRole("heading", { level: 1, name: heading }).waitFor();
    assert.equal(await page.locator("input[name=email]").inputValue(), "ada at acme & <b>");
    assert.equal(await page.locator("input[name=password]").inputValue(), "");
  }
  assert.equal(await page.locator("html").getAttribute("lang"), "pl");
  assert.equal(bodies.length, 2);
  for (const body of bodies) assert.ok(!body.includes("password") && !body.includes("correct"), body);
  assert.equal(await hosted.credentialsOf(session.id), 0);
  await page.locator("input[name=email]").fill(GOOD.email);
  await page.locator("input[name=password]").fill(GOOD.password);
  await page.locator("form.connect button[type=submit]").click();
  await page.locator("form.connect").waitFor({ state: "detached" });
  // Its own page is in the language that was chosen last, too.
  assert.equal(await page.locator("html").getAttribute("lang"), "pl");
  assert.equal((await hosted.read(session.id)).status, "completed");
  assert.deepEqual(complaints, []);
});

test("at 200 %, of the page and of its text alone, all of it is there and nothing scrolls sideways", async () => {
  const session = await hosted.session();
  for (const [viewport, text] of [
    // What a window of 1280 px is at 200 %.
    [{ width: 640, height: 400 }, "100%"],
    [{ width: 1280, height: 800 }, "200%"],
  ] as const) {
    await using visitor = await openPage({ viewport });
    const { page } = visitor;
    await page.goto(session.hosted_url);
    await page.evaluate(`document.documentElement.style.fontSize = "${text}"`);
    await page.getByRole("button", { name: "Connect" }).click();
    await page.getByRole("alert").waitFor();
    await page.evaluate(`document.documentElement.style.fontSize = "${text}"`);
    assert.equal(await page.evaluate("document.documentElement.scrollWidth"), viewport.width, text);
    const cut = await page.evaluate(`[...document.querySelectorAll("main *")]
      .filter((element) => getComputedStyle(element).overflow === "hidden" && !element.closest(".unseen"))
      .filter((element) => element.scrollWidth > element.clientWidth + 1 || element.scrollHeight > element.clientHeight + 1)
      .map((element) => element.outerHTML.slice(0, 200))`);
    assert.deepEqual(cut, []);
  }
});

test("a double click makes one credential and arrives", async () => {
  const session = await hosted.session({ return_url: `${application.origin}/back` });
  await using visitor = await openPage();
  const { page } = visitor;
  await page.goto(session.hosted_url);
  await page.getByLabel("Email address").fill(GOOD.email);
  await page.getByLabel("Password").fill(GOOD.password);
  await page.getByRole("button", { name: "Connect" }).dblclick({ noWaitAfter: true });
  await page.waitForURL(`${application.origin}/**`);
  assert.equal(await hosted.credentialsOf(session.id), 1);
});

test("going back after the submit shows no form and nothing that was typed", async () => {
  const session = await hosted.session({ return_url: `${application.origin}/back` });
  await using visitor = await openPage();
  const { page } = visitor;
  await page.goto(session.hosted_url);
  await fillIn(page);
  await page.waitForURL(`${application.origin}/**`);
  await page.goBack();
  await page.getByRole("heading", { name: "This link has already been used" }).waitFor();
  assert.ok(!(await page.content()).includes(GOOD.email));
});

test("a link left open past its time, opened after it, or made up is refused with a friendly page", async () => {
  const session = await hosted.session({ return_url: `${application.origin}/back` });
  await using visitor = await openPage();
  const { page } = visitor;
  const at = async (offset: string): Promise<void> =>
    await hosted.setClock(`timestamptz '${session.expires_at}' + interval '${offset}'`);
  try {
    await at("-1 minute");
    await page.goto(session.hosted_url);
    await at("0");
    await fillIn(page);
    await page.getByRole("heading", { name: "This link has expired" }).waitFor();
    assert.equal(page.url(), session.hosted_url);
    await page.goto(session.hosted_url);
    await page.getByRole("heading", { name: "This link has expired" }).waitFor();
    assert.equal(await hosted.credentialsOf(session.id), 0);
  } finally {
    await hosted.setClock();
  }
  await page.goto(`${hosted.service.url}/connect/${"x".repeat(43)}`);
  await page.getByRole("heading", { name: "This link does not work" }).waitFor();
});

test("no page can frame the form, not even one of the customer", async () => {
  const session = await hosted.session({ return_url: `${application.origin}/back` });
  const frames = `<!doctype html><iframe src="${elsewhere.origin}/ok"></iframe><iframe src="${session.hosted_url}"></iframe>`;
  pages.set("/frames", frames);
  await using visitor = await openPage();
  const { page, complaints } = visitor;
  await page.goto(`${application.origin}/frames`, { waitUntil: "load" });
  const [, allowed, refused] = page.frames();
  assert.equal(await allowed?.title(), "Landed");
  assert.match(String(refused?.url()), /^chrome-error:/);
  assert.ok(
    complaints.some((text) => text.includes("frame-ancestors")),
    complaints.join("\n"),
  );
});

test("a form on another site that knows the link and a CSRF value of it submits nothing", async () => {
  const session = await hosted.session({ return_url: `${application.origin}/back` });
  await using visitor = await openPage();
  const { page } = visitor;
  await page.goto(session.hosted_url);
  const csrf = await page.locator("input[name=_csrf]").inputValue();
  const inputs = Object.entries({ _csrf: csrf, ...GOOD }).map(
    ([name, value]) => `<input name="${name}" value="${value}">`,
  );
  const form = `<form method="post" action="${session.hosted_url}">${inputs.join("")}<button>Go</button></form>`;
  pages.set("/forged", `<!doctype html>${form}`);
  await page.goto(`${application.origin}/forged`);
  await page.getByRole("button", { name: "Go" }).click();
  await page.getByRole("heading", { name: "Please fill in the form again" }).waitFor();
  assert.equal((await hosted.read(session.id)).status, "pending");
});

test("at 320 px nothing scrolls sideways, in any state", async () => {
  const session = await hosted.session({ return_url: `${application.origin}/back` });
  await using visitor = await openPage({
    viewport: { width: 320, height: 568 },
    hasTouch: true,
    isMobile: true,
  });
  const { page } = visitor;
  const assertFits = async (state: string): Promise<void> => {
    const width = Number(await page.evaluate("document.documentElement.scrollWidth"));
    assert.equal(width, 320, `${state} is ${width} px wide`);
    assert.equal(
      await page.evaluate("getComputedStyle(document.querySelector('.card')).borderStyle"),
      "solid",
    );
  };
  await page.goto(session.hosted_url);
  await assertFits("the form");
  const long = "a-very-long-name-without-a-space".repeat(8);
  await fillIn(page, { email: long, password: "x" });
  await page.getByRole("alert").waitFor();
  await assertFits("the form with mistakes");
  const other = await hosted.session();
  await page.goto(other.hosted_url);
  await fillIn(page);
  await page.getByRole("heading", { name: "Your login is saved" }).waitFor();
  await assertFits("the success page");
  await page.goto(other.hosted_url);
  await assertFits("the used link");
});

test("on a phone the first field is on the first screen", async () => {
  const session = await hosted.session({ return_url: `${application.origin}/back` });
  await using visitor = await openPage({ viewport: { width: 390, height: 664 } });
  await visitor.page.goto(session.hosted_url);
  const box = await visitor.page.locator("form.connect").locator("input:visible").first().boundingBox();
  assert.ok(box !== null && box.y + box.height <= 664, JSON.stringify(box));
});

test("sent without a connection, the form says so and keeps everything that was typed, the secret too", async () => {
  const session = await hosted.session({ return_url: `${application.origin}/back` });
  await using visitor = await openPage({});
  const { page } = visitor;
  await page.goto(session.hosted_url);
  await page.context().setOffline(true);
  await fillIn(page);
  const note = page.getByRole("status").getByText("check your internet connection");
  await note.waitFor();
  assert.ok((await page.locator("input[type=password]").first().inputValue()) !== "");
  assert.deepEqual(await axeLightAndDark(page), []);
  await page.context().setOffline(false);
  await note.waitFor({ state: "detached" });
  await page.getByRole("button", { name: "Connect" }).click();
  await page.waitForURL(`${application.origin}/back**`);
  // The used link leads back.
  await page.goto(session.hosted_url);
  await page.getByText("Acme", { exact: false }).first().waitFor();
  assert.equal(
    await page.getByRole("link", { name: /^Back to / }).getAttribute("href"),
    `${application.origin}/back`,
  );
});
