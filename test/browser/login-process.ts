// A process of its own, for who it runs as: logs into the portal, reads three pages, and says what it has seen of its browser.
import { readdirSync, readFileSync } from "node:fs";
import type { StepConfig } from "#answers/browser/define-step.ts";
import { openTarget } from "../documents/target.ts";
import { EMAIL, openPortal, PASSWORD } from "./portal.ts";
import { doSteps, openStage } from "./stage.ts";

const LOGIN: readonly StepConfig[] = [
  { goto: "/login" },
  { dismiss: { role: "button", name: "Accept all" } },
  { fill: { label: "Email", with: EMAIL } },
  { fill: { label: "Password", with: PASSWORD } },
  { click: { role: "button", name: "Sign in" } },
  { expect: { visible: { role: "heading", name: "Dashboard" } } },
];
const PAGES = [
  { goto: "/invoices" },
  {
    repeat: {
      steps: [{ extract: { rows: { css: "tbody tr" }, columns: { no: ".no" } } }],
      while: { enabled: { role: "button", name: "Next" } },
      next: [{ click: { role: "button", name: "Next" } }],
    },
  },
] as unknown as readonly StepConfig[];

await using target = await openTarget();
openPortal(target);
await using stage = await openStage(target.url);
const rows = await stage.logIn(async (browser) => {
  await doSteps(browser, LOGIN, { place: "login" });
  return (await doSteps(browser, PAGES)).rows.map(({ no }) => no);
});
const uids = await stage.browse(async () => uidsOfRenderers());
process.stdout.write(JSON.stringify({ rows, uids }));

/** The users of the processes that show pages, of those below this one. */
function uidsOfRenderers(): readonly string[] {
  const found = new Set<string>();
  for (const pid of readdirSync("/proc").filter((name) => /^\d+$/.test(name))) {
    try {
      const isRenderer = readFileSync(`/proc/${pid}/cmdline`, "latin1").includes("--type=renderer");
      if (isRenderer && isBelow(pid))
        found.add(/^Uid:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1] ?? "");
    } catch {
      // It has ended.
    }
  }
  return [...found];
}

function isBelow(pid: string): boolean {
  for (let at = pid; Number(at) > 1;) {
    if (Number(at) === process.pid) return true;
    at = /^PPid:\s+(\d+)/m.exec(readFileSync(`/proc/${at}/status`, "utf8"))?.[1] ?? "0";
  }
  return false;
}
