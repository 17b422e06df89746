// A logged-in state is what belongs to the hosts, and comes back before the first step.
import assert from "node:assert/strict";
import { test } from "node:test";
import { Secret } from "#lib/secret.ts";
import { BrowserError } from "#outbound/browser/browser-error.ts";
import type { BrowserState } from "#outbound/browser/state.ts";
import { openStage, startSite } from "./stage.ts";

const KEEP = `
  const put = (value) => new Promise((resolve) => {
    const request = indexedDB.open("app", 1);
    request.onupgradeneeded = () => request.result.createObjectStore("tokens");
    request.onsuccess = () => {
      const change = request.result.transaction("tokens", "readwrite");
      change.objectStore("tokens").put(value, "token");
      change.oncomplete = () => { request.result.close(); resolve(); };
    };
  });
  const get = () => new Promise((resolve) => {
    const request = indexedDB.open("app", 1);
    request.onsuccess = () => {
      const read = request.result.transaction("tokens").objectStore("tokens").get("token");
      read.onsuccess = () => { request.result.close(); resolve(read.result); };
    };
  });`;

const PAGES = {
  "/login": `<script>${KEEP}</script>`,
  "/app": `<script>${KEEP}</script><button onclick="sessionStorage.clear(); location = '/out'">Log out</button>`,
  "/out": "<p>out</p>",
};

const SEEN =
  "get().then((token) => [document.cookie, localStorage.local, sessionStorage.session, token].join())";

test("cookies, storage and IndexedDB of the hosts come back in a fresh browser, and nothing of others", async (t) => {
  const site = await startSite(t, PAGES);
  const other = `http://localhost:${site.port}`;
  const stage = await openStage(t);
  const first = await stage.open({ hosts: [site.origin, other] });
  for (const [origin, value] of [
    [other, "foreign"],
    [site.origin, "own"],
  ]) {
    await first.page.goto(`${origin}/login`);
    await first.page.evaluate(
      `document.cookie = "c=${value}", localStorage.local = "${value}", sessionStorage.session = "${value}", put("${value}")`,
    );
  }
  const all = await first.captureState();
  assert.deepEqual(all.notRestorable, []);
  assert.deepEqual(all.state.origins.map(({ origin }) => origin).toSorted(), [site.origin, other].toSorted());
  await first.close();

  // In the second one only the first host is one. What is sealed for both does not reach the other.
  const second = await stage.open({ hosts: [site.origin], state: new Secret(all.state) });
  const before = site.asked.length;
  await second.page.goto(`${site.origin}/app`);
  assert.equal(await second.page.evaluate(SEEN), "c=own,own,own,own");
  assert.deepEqual(
    site.asked.slice(before).filter((path) => !path.includes("favicon")),
    [`127.0.0.1:${site.port}/app`],
    "nothing is sent to restore",
  );
  // A log-out stays one: nothing brings the token back.
  await second.page.getByText("Log out").click();
  await second.page.getByText("out").waitFor();
  assert.equal(await second.page.evaluate("sessionStorage.length"), 0);
  const { state } = await second.captureState();
  assert.ok(!JSON.stringify(state).includes("foreign"), JSON.stringify(state));
  assert.deepEqual(state.session satisfies BrowserState["session"], []);
  await second.close();
});

test("a key that cannot be extracted makes a login not restorable; a large state is refused with its sizes", async (t) => {
  const site = await startSite(t, PAGES);
  const stage = await openStage(t);
  // A name of loopback is a secure context, as `crypto.subtle` wants.
  const browser = await stage.open({ hosts: [site.origin], stateBytesMax: 5_000 });
  await browser.page.goto(`${site.origin}/login`);
  await browser.page.evaluate(
    `crypto.subtle.generateKey({ name: "ECDSA", namedCurve: "P-256" }, false, ["sign"]).then((keys) => put({ deep: [keys] }))`,
  );
  // Also where no page of that origin is open any more.
  await browser.page.goto("about:blank");
  assert.deepEqual((await browser.captureState()).notRestorable, [site.origin]);
  await browser.page.goto(`${site.origin}/login`);
  await browser.page.evaluate(`put("x".repeat(6_000))`);
  await assert.rejects(
    browser.captureState(),
    (error: unknown) =>
      error instanceof BrowserError &&
      error.failure === "state_too_large" &&
      error.message.includes(`${site.origin}: 60`),
  );
  await browser.close();
});
