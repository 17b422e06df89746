/** Whom the embedded flow talks to, in a real Chromium: one page of one origin, and nobody who says to be it. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { Browser, FrameLocator, Page } from "playwright-core";
import { must } from "#lib/assert.ts";
import { launchChromium } from "./chromium.ts";
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
import { accountDocument, GOOD, setUpEmbedded, type Embedded, type EmbeddedBody } from "./embedded-setup.ts";

let app: Site;
let evil: Site;
let embedded: Embedded;
let browser: Browser;
let integrity: string;

before(async () => {
  [app, evil] = await Promise.all([startSite("localhost"), startSite("evil.localhost")]);
  embedded = await setUpEmbedded({ origins: [app.origin] });
  ({ integrity } = await readWidget(embedded.service.url));
  for (const site of [app, evil]) site.pages.set("/", hostPage(embedded.service.url, integrity));
  browser = await launchChromium();
});
after(async () => {
  await browser?.close();
  await embedded?.[Symbol.asyncDispose]();
  for (const site of [app, evil]) site?.close();
});

const FORM = { name: "Connect Northwind Portal" };

async function visit(url = app.origin) {
  const visitor = await openVisitor(browser);
  await visitor.page.goto(url);
  return visitor;
}

const opens = ({ client_token, embed_url }: EmbeddedBody): string =>
  `start(${JSON.stringify({ clientToken: client_token, embedUrl: embed_url })}, true)`;

test("a page of another origin, an evil page around the right one, and a sandboxed one get nothing", async () => {
  const session = await embedded.create();
  await using visitor = await visit(evil.origin);
  const { page, complaints } = visitor;
  const refusals = (): number => complaints.filter((text) => text.includes("frame-ancestors")).length;
  await openFlow(page, session);
  const failure = await toldOf(page, "error");
  assert.deepEqual([failure.code, failure.recoverable], ["origin_not_allowed", false]);
  assert.deepEqual(await toldOf(page, "exited"), { at_view: "error", reason: "error" });
  assert.equal(refusals(), 1);
  assert.deepEqual((await told(page)).said, [], "the frame has said nothing");
  // The right page, framed by an evil one: every ancestor counts.
  evil.pages.set("/around", { html: `<!doctype html><iframe src="${app.origin}/"></iframe>` });
  await page.goto(`${evil.origin}/around`);
  const framed = must(page.frames()[1], "the right page in the evil one");
  await until(framed, "typeof start === 'function'");
  await framed.evaluate(opens(session));
  await until(framed, "handles.at(-1).events.some(({ type }) => type === 'error')");
  assert.equal(refusals(), 2);
  assert.deepEqual(await framed.evaluate("said"), []);
  // The right page with an origin of its own, `null`.
  app.pages.set("/sandboxed", {
    html: hostPage(embedded.service.url, integrity).html,
    headers: { "content-security-policy": "sandbox allow-scripts allow-forms allow-popups" },
  });
  await page.goto(`${app.origin}/sandboxed`);
  await openFlow(page, session);
  assert.equal((await toldOf(page, "error")).code, "origin_not_allowed");
  assert.equal(refusals(), 3);
  // Opened as a page by itself it is nothing.
  await page.goto(session.embed_url);
  await page.getByRole("heading", { name: "This link does not work" }).waitFor();
  assert.equal((await embedded.read(session.id)).status, "pending");
});

test("an origin that is taken from the account has no frame any more", async () => {
  const session = await embedded.create();
  await embedded.installation.apply(accountDocument(["https://elsewhere.example"]));
  try {
    await using visitor = await visit();
    await openFlow(visitor.page, session);
    assert.equal((await toldOf(visitor.page, "error")).code, "origin_not_allowed");
  } finally {
    await embedded.installation.apply(accountDocument([app.origin]));
  }
});

/** What would end a flow, or make its page believe that it is done. */
const LIES = [
  { seq: 98, type: "close", payload: {} },
  { seq: 99, type: "completed", payload: { session_id: "ecs_x", credential_id: "cred_evil" } },
  { seq: 100, type: "exited", payload: { at_view: "form", reason: "closed" } },
];

async function openTo(page: Page, session: EmbeddedBody): Promise<{ nonce: string; frame: FrameLocator }> {
  const frame = await openFlow(page, session);
  await frame.getByRole("heading", FORM).waitFor();
  return { frame, nonce: (await told(page)).said[0]?.data.nonce };
}

/** The form is still there and answers, and nobody was told of an end. */
async function assertUnmoved(page: Page): Promise<void> {
  const frame = page.frameLocator("iframe").first();
  await page.bringToFront();
  await frame.getByLabel("Email address").fill(GOOD.email);
  await frame.getByLabel("Password", { exact: true }).fill("x");
  await frame.getByRole("button", { name: "Connect" }).click();
  await toldOf(page, "field_error");
  const ends = kinds((await told(page)).events).filter((kind) => ["completed", "exited"].includes(kind));
  assert.deepEqual(ends, []);
}

test("messages that are wrong in a word, or said again, or by the wrong window, change nothing", async () => {
  const session = await embedded.create();
  await using visitor = await visit();
  const { page } = visitor;
  const { nonce } = await openTo(page, session);
  const right = { source: "latchkey", v: 1, session_id: session.id, nonce };
  // By the page to itself: right in every word, from the wrong window.
  const toPage = LIES.map((lie) => ({ ...right, ...lie }));
  // By the page to the frame: the right window and origin, each wrong in one thing. The last was used by `init`.
  const close = { ...right, seq: 50, type: "close", payload: {} };
  const toFrame = [
    { ...close, nonce: "0".repeat(32) },
    { ...close, source: "other" },
    { ...close, v: 2 },
    { ...close, session_id: "ecs_other" },
    { ...close, seq: "51" },
    { ...close, payload: null },
    { ...close, type: "exited" },
    "close",
    null,
    { ...close, seq: 1 },
  ];
  await page.evaluate(`for (const lie of ${JSON.stringify(toPage)}) postMessage(lie, location.origin);
    for (const message of ${JSON.stringify(toFrame)}) frames[0].postMessage(message, "*");`);
  await until(page, `said.filter(({ data }) => data?.seq >= 98).length === ${toPage.length}`);
  await assertUnmoved(page);
  // The same once more with nothing wrong ends it: so these were refused for what was wrong in them.
  await page.evaluate(`frames[0].postMessage(${JSON.stringify({ ...close, seq: 60 })}, "*")`);
  assert.deepEqual(await toldOf(page, "exited"), { at_view: "form", reason: "closed" });
  assert.equal((await embedded.read(session.id)).status, "pending");
});

test("messages of another origin change nothing, though they know every word", async () => {
  const session = await embedded.create();
  await using visitor = await visit(evil.origin);
  const { page: other } = visitor;
  evil.pages.set("/opens", {
    html: `<!doctype html><button>Open</button><script>
    document.querySelector("button").onclick = () => { globalThis.victim = open("${app.origin}/"); };</script>`,
  });
  await other.goto(`${evil.origin}/opens`);
  const opened = other.context().waitForEvent("page");
  await other.getByRole("button").press("Enter");
  const victim = await opened;
  await until(victim, "typeof start === 'function'");
  const { nonce } = await openTo(victim, session);
  const known = LIES.map((lie) => ({ source: "latchkey", v: 1, session_id: session.id, nonce, ...lie }));
  await other.evaluate(`for (const lie of ${JSON.stringify(known)}) {
    victim.postMessage(lie, "*");
    victim.frames[0].postMessage(lie, "*");
  }`);
  await until(victim, `said.filter(({ data }) => data?.seq >= 98).length === ${known.length}`);
  await assertUnmoved(victim);
  assert.equal((await embedded.read(session.id)).status, "pending");
});

test("what is not of the service gets no token, when the frame is led elsewhere", async () => {
  const session = await embedded.create();
  app.pages.set("/free", { html: hostPage(embedded.service.url, integrity).html });
  evil.pages.set("/mimic", {
    html: `<!doctype html><script>const heard = [];
    addEventListener("message", (event) => heard.push(event.data));
    const [nonce] = location.hash.slice(1).split(".");
    const ready = { source: "latchkey", v: 1, session_id: "${session.id}", nonce, seq: 1, type: "ready", payload: {} };
    parent.postMessage(ready, "*");</script>`,
  });
  await using visitor = await visit(`${app.origin}/free`);
  const { page } = visitor;
  await openFlow(page, session);
  await toldOf(page, "opened");
  await page.evaluate(`{
    const frame = document.querySelector("iframe");
    frame.src = ${JSON.stringify(evil.origin)} + "/mimic" + new URL(frame.src).hash;
  }`);
  await until(page, `said.some(({ from }) => from === ${JSON.stringify(evil.origin)})`);
  await page.evaluate("handles.at(-1).handle.setTheme('dark')");
  const mimic = must(
    page.frames().find((each) => each.url().startsWith(evil.origin)),
    "the page that is not of the service",
  );
  // What was sent before this has come before it.
  await page.evaluate(`frames[0].postMessage("last", "*")`);
  await until(mimic, "heard.includes('last')");
  assert.deepEqual(await mimic.evaluate("heard"), ["last"]);
});
