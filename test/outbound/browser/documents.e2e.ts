// Only hosts give documents, whatever else may be loaded.
import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import type { Page } from "playwright-core";
import { until } from "../../eventually.ts";
import { openStage, startSite } from "./stage.ts";

/** Ways of a page to another document: `u` is foreign, `r` a redirect of the page's own site to it, `o` one of another host's. */
const WAYS: Readonly<Record<string, string>> = {
  location: "location = u",
  locationRedirect: "location = r",
  link: "add('a', { href: u }).click()",
  refresh: "add('meta', { httpEquiv: 'refresh', content: '0;url=' + u })",
  form: "add('form', { action: u }).submit()",
  formRedirect: "add('form', { action: r, method: 'POST' }).submit()",
  frame: "add('iframe', { src: u })",
  frameRedirect: "add('iframe', { src: r })",
  frameOfOtherHost: "add('iframe', { src: o })",
  frameOfOtherHostLater:
    "{ const f = add('iframe', { src: new URL('/', o).href }); f.onload = () => { f.onload = null; setTimeout(() => f.src = o, 300); }; }",
  object: "add('object', { data: u })",
  window: "window.open(u)",
  windowLater: "{ const w = window.open('/'); setTimeout(() => w.location = r, 500); }",
};

/** The page of the error that the last way led to may come in between. */
const visit = async (page: Page, url: string): Promise<void> =>
  await until(`${url} is open`, async () => {
    const answer = await page.goto(url).catch(() => null);
    return answer?.ok() === true && page.url() === url;
  });

test(`a page does not get to a foreign document by any of ${Object.keys(WAYS).length} ways, though it may load from there`, async (t) => {
  const foreign = await startSite(t, (_request, response) =>
    response.writeHead(200, { "access-control-allow-origin": "*" }).end("foreign"),
  );
  const site = await startSite(t, (request, response) => {
    const { pathname, searchParams } = new URL(request.url ?? "/", "http://site");
    if (pathname === "/redirect") response.writeHead(302, { location: searchParams.get("u") ?? "" }).end();
    else response.writeHead(200, { "content-type": "text/html" }).end("<p>own</p>");
  });
  const other = `http://localhost:${site.port}`;
  const stage = await openStage(t);
  const browser = await stage.open({ hosts: [site.origin, other], resources: [foreign.origin] });
  const { page } = browser;
  for (const [name, code] of Object.entries(WAYS)) {
    const u = `${foreign.origin}/${name}`;
    const before = browser.refused().reduce((sum, { count }) => sum + count, 0);
    await visit(page, `${site.origin}/`);
    await page.evaluate(`{
      const [u, r, o] = ${JSON.stringify([u, `/redirect?u=${u}`, `${other}/redirect?u=${u}`])};
      const add = (name, given) => { const e = document.createElement(name); Object.assign(e, given); document.body.append(e); return e; };
      ${code}
    }`);
    await until(
      `${name} is refused`,
      () => browser.refused().reduce((sum, { count }) => sum + count, 0) > before,
    );
    for (const each of browser.context.pages()) if (each !== page) await each.close();
  }
  assert.deepEqual(foreign.asked, []);
  assert.deepEqual(
    [...new Set(browser.refused().map(({ origin, kind }) => `${kind} ${origin}`))],
    [`document ${foreign.origin}`],
  );
  // As a resource it may be loaded.
  await visit(page, `${site.origin}/`);
  assert.equal(
    await page.evaluate(`fetch("${foreign.origin}/data").then((answer) => answer.text())`),
    "foreign",
  );
  assert.equal(browser.failure, null);
  // What no session sees in time, the first redirect of a new window, ends the browser.
  await page.evaluate(`window.open("/redirect?u=${foreign.origin}/window")`).catch(() => undefined);
  await until("the browser ends", () => browser.failure !== null);
  const { failure, message } = browser.explain(null);
  assert.equal(failure, "origin_refused");
  assert.match(message, new RegExp(foreign.origin));
  for (const url of [
    "file:///etc/passwd",
    "view-source:http://a.example/",
    "chrome://version",
    foreign.origin,
  ])
    assert.equal(browser.mayOpen(new URL(url)), false, url);
  assert.equal(browser.mayOpen(new URL(`${site.origin}/any`)), true);
});

test("no service worker is registered, and no download begins", async (t) => {
  const site = await startSite(t, (request, response) => {
    if (request.url === "/file") response.writeHead(200, { "content-disposition": "attachment" }).end("file");
    else if (request.url === "/worker.js")
      response.writeHead(200, { "content-type": "text/javascript" }).end("");
    else response.writeHead(200, { "content-type": "text/html" }).end("<a href=/file>file</a>");
  });
  const stage = await openStage(t);
  const { page } = await stage.open({ hosts: [site.origin] });
  await page.goto(`${site.origin}/`);
  // The driver replaces `register` by a function that does nothing.
  await Promise.race([page.evaluate("navigator.serviceWorker.register('/worker.js')"), sleep(1_000)]);
  const [download] = await Promise.all([page.waitForEvent("download"), page.getByText("file").click()]);
  assert.notEqual(await download.failure(), null);
  assert.ok(!site.asked.some((path) => path.endsWith("/worker.js")));
});
