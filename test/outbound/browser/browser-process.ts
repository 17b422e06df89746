// A worker's part: opens a browser, says so, and waits to be killed.
import { pino } from "pino";
import { openBrowsers } from "#outbound/browser/browsers.ts";
import { openGate } from "#outbound/gate.ts";
import { SETTINGS } from "./browser-settings.ts";

const [program = "", folder = ""] = process.argv.slice(2);
const browsers = openBrowsers({
  gate: openGate({ allow: [] }),
  log: pino({ level: "silent" }),
  settings: { ...SETTINGS, program },
  folder,
});
const { page } = await browsers.open({
  hosts: [],
  resources: [],
  timeoutMs: 120_000,
  signal: new AbortController().signal,
});
await page.setContent(
  "<iframe srcdoc='<p>frame</p>'></iframe><script>setTimeout(() => { for (;;); }, 50)</script>",
);
process.stdout.write("open\n");
setInterval(() => {}, 1_000);
