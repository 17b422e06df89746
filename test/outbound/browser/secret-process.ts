// A process of its own, for what its environment does: fills a secret in, and lets the page look for another way out.
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { pino } from "pino";
import { openBrowsers } from "#outbound/browser/browsers.ts";
import { openGate } from "#outbound/gate.ts";
import { Secret } from "#lib/secret.ts";
import { SETTINGS } from "./browser-settings.ts";

const [program = "", secret = ""] = process.argv.slice(2);

let trapped = 0;
const trap = createServer((_request, response) => {
  trapped++;
  response.end();
});
const site = createServer((_request, response) => {
  response.setHeader("content-type", "text/html").end("<label>Password <input type=password></label>");
});
for (const server of [trap, site])
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
const portOf = (server: typeof site): number => (server.address() as AddressInfo).port;

const gate = openGate({ allow: [`127.0.0.1:${portOf(site)}`] });
const browsers = openBrowsers({ gate, log: pino({ level: "silent" }), settings: { ...SETTINGS, program } });
const origin = `http://127.0.0.1:${portOf(site)}`;
const browser = await browsers.open({
  hosts: [origin],
  resources: "any",
  timeoutMs: 60_000,
  signal: new AbortController().signal,
});
await browser.page.goto(origin);
const field = browser.page.getByLabel("Password");
await browser.fillSecret(field, new Secret(secret), { how: "fill", timeoutMs: 5_000 });
const { length } = await field.inputValue();
await browser.page.evaluate(
  `fetch("http://127.0.0.1:${portOf(trap)}/", { mode: "no-cors" }).catch(() => {}).then(() => console.log(document.querySelector("input").value))`,
);
await browser.close();
for (const server of [trap, site]) {
  server.closeAllConnections();
  server.close();
}
await gate.close();
process.stdout.write(JSON.stringify({ length, trapped }));
