// Ledgerly, the customer's application of the examples: it knows nothing of Latchkey but the interface.
import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { test } from "node:test";
import { load } from "cheerio";
import { walk } from "#examples/demo/visitor.ts";
import { startApp } from "../../examples/customer-app/app.ts";
import { openCaller } from "../caller.ts";
import { openLedgerly } from "./ledgerly.ts";
import { account } from "./portal-visitor.ts";

/** Presses the button of a form that posts there; gives where the browser is sent. */
async function press(url: string, path: string, form: Record<string, string> = {}): Promise<string> {
  const answer = await fetch(url + path, {
    method: "POST",
    body: new URLSearchParams(form),
    redirect: "manual",
  });
  assert.equal(answer.status, 303, await answer.text());
  return new URL(answer.headers.get("location") ?? "", url).href;
}

test("Ledgerly connects by the hosted form and back, fetches, shows what came, and disconnects", async (t) => {
  await using ledgerly = await openLedgerly(t);
  const { app, service, apiKey } = ledgerly;
  const home = async () => load(await (await fetch(app.url)).text());

  const hosted = await press(app.url, "/connect", { strategy: "strat_northwind_portal" });
  assert.ok(hosted.startsWith(`${service.url}/connect/`), hosted);
  assert.match((await home())("section.connection").text(), /Not finished/);
  const { username, password } = account("demo");
  const back = await walk(hosted, { username, password }, app.url);
  assert.match(back, /\/connected\?connection=[\w-]+&session_id=sess_\w+$/);
  await fetch(back);
  const connected = (await home())("section.connection");
  assert.equal(connected.find(".pill").text(), "Connected");
  const api = openCaller(service.url, apiKey);
  const session = new URL(back).searchParams.get("session_id");
  const credentialId = (await api.get(`/credential-sessions/${session}`)).body.credential_id;
  assert.match(credentialId, /^cred_\w+$/);
  assert.ok(!connected.text().includes(credentialId), "an end user has no use for it");
  assert.ok(!connected.text().includes(password));

  const action = connected.find("form").first().attr("action") ?? "";
  const run = await press(app.url, action, { blueprint: "supplier-invoices" });
  let page = load(await (await fetch(run)).text());
  for (let tries = 0; tries < 400 && page("meta[http-equiv=refresh]").length > 0; tries++) {
    await sleep(100);
    page = load(await (await fetch(run)).text());
  }
  assert.equal(page(".status").text(), "Done");
  assert.equal(page("h2").text(), "Invoices: 240 records");
  assert.equal(page("tr").length, 51, "the first fifty, under their heading");
  assert.match((await home())("li").text(), /All invoices\s+Northwind Supplier Portal\s+Done/);

  await press(app.url, action.replace(/fetch$/, "disconnect"));
  assert.equal((await home())("section.connection").length, 0);
  assert.equal((await api.delete(`/credentials/${credentialId}`)).status, 404);
});

test("what Ledgerly does not know is not found, another site's page presses none of its buttons, and a refusal is shown", async (t) => {
  const app = await startApp({ port: 0, latchkeyUrl: "http://127.0.0.1:9", apiKey: "none" });
  t.after(async () => await app.close());
  const status = async (path: string, init: RequestInit = {}): Promise<number> =>
    (await fetch(app.url + path, { redirect: "manual", ...init })).status;
  assert.equal(await status("/"), 200);
  assert.equal(await status("/fetched/run_x"), 404);
  assert.equal(await status("/connected?connection=x&session_id=sess_x"), 404);
  const foreign = { method: "POST", headers: { "sec-fetch-site": "cross-site" } };
  assert.equal(await status("/connect", foreign), 403);
  const body = new URLSearchParams({ strategy: "strat_northwind_portal" });
  assert.equal(await status("/connect", { method: "POST", body }), 502, "Latchkey can't be reached");
});
