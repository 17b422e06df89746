// Ledgerly in a real Chromium: the widget in its page, and its server, which asks Latchkey what is so.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { startApp } from "../../examples/customer-app/app.ts";
import { openVisitor } from "../hosted/embed-stage.ts";
import { launchChromium } from "../hosted/chromium.ts";
import { install } from "../service.ts";
import { account, openPortal } from "./portal-visitor.ts";

const document = (name: string): string =>
  readFileSync(new URL(`../../examples/${name}`, import.meta.url), "utf8");

test("Ledgerly connects in a frame of its own page; what its page says alone connects nothing", async (t) => {
  const portal = await openPortal(t);
  await using installation = await install();
  const own = [
    "strategies/northwind-portal.yaml",
    "blueprints/supplier-invoices.yaml",
    "blueprints/invoice-table.yaml",
  ]
    .map(document)
    .map((text) => text.replaceAll("http://127.0.0.1:4600", portal.url));
  await installation.apply(document("account.yaml"), ...own);
  const [apiKey, service] = await Promise.all([installation.createKey("acme"), installation.serve()]);
  const app = await startApp({ port: 0, latchkeyUrl: service.url, apiKey });
  t.after(async () => await app.close());
  await installation.apply(document("account.yaml").replaceAll("http://127.0.0.1:3000", app.url));
  const browser = await launchChromium();
  t.after(async () => await browser.close());
  await using visitor = await openVisitor(browser);
  const { page, complaints } = visitor;
  await page.goto(app.url);
  const { username, password } = account("demo");

  const begun = page.waitForResponse((response) => response.url().endsWith("/embed"));
  await page.getByRole("button", { name: /without leaving this page/ }).click();
  const { connection } = (await (await begun).json()) as { connection: string };
  const frame = page.frameLocator("dialog iframe");
  await frame.getByRole("button", { name: /^Supplier invoices/ }).click();
  await frame.getByRole("heading", { name: /^Connect Northwind/ }).waitFor();
  // The person at the browser may say what they like.
  const lie = await fetch(`${app.url}/connections/${connection}/confirm`, { method: "POST" });
  assert.deepEqual(await lie.json(), { isConnected: false });
  await frame.locator("input[name=username]").fill(username);
  await frame.locator("input[name=password]").fill(password);
  await frame.locator("main button[type=submit]").click();
  await page.locator("section.connection code").waitFor();
  assert.match(await page.locator("section.connection code").innerText(), /^cred_\w+$/);

  await page.getByRole("button", { name: "Fetch: Open invoices" }).click();
  await page.getByText("completed", { exact: true }).waitFor();
  await page.goto(app.url);
  await page.getByRole("button", { name: "Disconnect" }).click();
  await page.getByText("Nothing is connected yet.").waitFor();
  assert.deepEqual(complaints, []);
});
