// Ledgerly in a real Chromium: the widget in its page, and its server, which asks Latchkey what is so.
import assert from "node:assert/strict";
import { test } from "node:test";
import { openVisitor } from "../hosted/embed-stage.ts";
import { launchChromium } from "../hosted/chromium.ts";
import { openLedgerly } from "./ledgerly.ts";
import { account } from "./portal-visitor.ts";

test("Ledgerly connects in a frame of its own page; what its page says alone connects nothing", async (t) => {
  await using ledgerly = await openLedgerly(t);
  const { app } = ledgerly;
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
  await page.locator("section.connection").getByText("Connected", { exact: true }).waitFor();

  await page.getByRole("button", { name: "Fetch: Open invoices" }).click();
  await page.getByText("Done", { exact: true }).waitFor();
  await page.goto(app.url);
  await page.getByRole("button", { name: "Disconnect" }).click();
  await page.getByText("Nothing is connected yet.").waitFor();
  assert.deepEqual(complaints, []);
});
