// What pages weigh and how long they take, in a real Chromium at a service with data: the numbers of docs/dashboard.md#loads.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { Page } from "playwright-core";
import { axeLightAndDark } from "../axe.ts";
import { until } from "../eventually.ts";
import { openProgram } from "../browser/program.ts";
import { startTarget, type Target } from "../flow/target.ts";
import { openDashboardStage, type DashboardStage } from "./dashboard-stage.ts";

const ROUNDS = 5;
const OVERVIEW_BYTES_MAX = 220_000;
const REVIEW_RECORDS = 2_000;
const KEYS = 40;

let stage: DashboardStage;
let program: Awaited<ReturnType<typeof openProgram>>;
let target: Target;

before(async () => {
  program = await openProgram();
  target = await startTarget(() => ({
    headers: { "content-type": "text/html" },
    body: "<!doctype html><title>Invoices</title><h1>Invoices</h1><button>Next</button>",
  }));
  stage = await openDashboardStage({ LATCHKEY_BROWSER: program.path });
  const rows = Array.from({ length: 40 }, (_, n) => ({ supplier: n % 9 === 4 ? "" : "Northwind", total: n }));
  for (let n = 0; n < 12; n++) {
    const run = await stage.trigger("plain-list", n % 4 === 3 ? "no JSON" : rows, { run_name: `Run ${n}` });
    await stage.caller.waitForRun(run, 100_000);
  }
});

after(async () => {
  await stage?.[Symbol.asyncDispose]();
  await target?.close();
  program?.remove();
});

const middleOf = (numbers: readonly number[]): number =>
  numbers.toSorted((a, b) => a - b)[Math.floor(numbers.length / 2)] ?? Number.NaN;

/** What the browser measures from the request of a page on: until its largest content is painted, and its bytes on the wire. */
const LOAD = `new Promise((done) => {
  new PerformanceObserver((list) => {
    const lcp = list.getEntries().at(-1).startTime;
    const files = [...performance.getEntriesByType("navigation"), ...performance.getEntriesByType("resource")];
    done({ lcp, bytes: files.reduce((sum, { transferSize }) => sum + transferSize, 0), requests: files.length });
  }).observe({ type: "largest-contentful-paint", buffered: true });
})`;

/** With an empty cache each time. */
async function load(path: string): Promise<{ lcp: number; bytes: number; requests: number }> {
  const page = await stage.openPage("admin", path);
  await page.locator("[aria-busy=true]").first().waitFor({ state: "detached" });
  await page.waitForLoadState("networkidle");
  const measured = await page.evaluate<{ lcp: number; bytes: number; requests: number }>(LOAD);
  await page.context().close();
  return measured;
}

test("the overview weighs at most 220 kB", { timeout: 300_000 }, async (context) => {
  for (const path of ["", "/runs"]) {
    const loads = [];
    for (let round = 0; round < ROUNDS; round++) loads.push(await load(path));
    const bytes = Math.max(...loads.map((each) => each.bytes));
    const lcp = middleOf(loads.map((each) => each.lcp));
    context.diagnostic(
      `${path === "" ? "overview" : path}: ${bytes} bytes, ${loads[0]?.requests} requests, LCP ${Math.round(lcp)} ms in the middle of ${ROUNDS}`,
    );
    if (path === "") assert.ok(bytes <= OVERVIEW_BYTES_MAX, `${bytes} bytes`);
  }
});

/** From a key to the next frame that is painted, for each key. */
const WATCH_KEYS = `(() => {
  window.keys = [];
  document.addEventListener("keydown", () => {
    const since = performance.now();
    requestAnimationFrame(() => setTimeout(() => window.keys.push(performance.now() - since)));
  }, true);
})()`;

test(
  "a key in a review of 2,000 records is answered in the next frames",
  { timeout: 300_000 },
  async (context) => {
    const rows = Array.from({ length: REVIEW_RECORDS }, (_, n) => ({
      supplier: n % 10 === 4 ? "" : "Northwind",
      total: n + 1,
      number: `RE-${n}`,
    }));
    const review = await stage.waitForReview(await stage.trigger("supplier-invoices", rows));
    const page: Page = await stage.openPage("reviewer", `/reviews/${review}`);
    const field = page.getByLabel("supplier of record 1", { exact: true });
    await field.waitFor();
    await page.evaluate(WATCH_KEYS);
    await field.focus();
    for (let key = 0; key < KEYS; key++) await page.keyboard.press("x");
    const times = await page.evaluate<number[]>("window.keys");
    const p95 = times.toSorted((a, b) => a - b)[Math.floor(times.length * 0.95)] ?? Number.NaN;
    context.diagnostic(
      `${times.length} keys: ${middleOf(times).toFixed(1)} ms in the middle, p95 ${p95.toFixed(1)} ms`,
    );
    assert.equal(await field.inputValue(), `Northwind${"x".repeat(KEYS)}`);
    await page.context().close();
  },
);

test("what the page of a failed step showed is in the node's panel; axe finds nothing, wide and on a phone", async () => {
  await stage.operators.installation.apply(`blueprint: pages
account: acme
hosts: [${target.url}]
nodes:
  - id: read
    type: browser
    retry: { attempts: 1 }
    steps:
      - goto: ${target.url}/invoices
      - click: { role: button, name: Nxet, exact: true }
        timeout: 300ms
      - extract: { fields: { title: h1 } }
  - { id: out, type: output, refKey: out, from: read }`);
  const { body, text } = await stage.caller.post("/blueprints/pages/trigger", {});
  assert.ok(body.id, text);
  await stage.caller.waitForRun(body.id, 100_000);
  for (const width of [1_440, 390]) {
    const page = await stage.openPage("admin", `/runs/${body.id}`, { viewport: { width, height: 900 } });
    await page.getByRole("tab", { name: "Page" }).click();
    await page.getByLabel("Outline", { exact: true }).getByText('button "Next"').waitFor();
    const picture = page.getByAltText(/The page at steps\[1\]/);
    await until(
      "the picture is shown",
      async () =>
        (await picture.evaluate((image) => (image as unknown as { naturalWidth: number }).naturalWidth)) > 0,
    );
    assert.deepEqual(await axeLightAndDark(page), [], `${width}`);
    assert.equal(await page.evaluate("document.documentElement.scrollWidth > innerWidth"), false);
    const folder = process.env["LATCHKEY_TEST_PICTURES"];
    if (folder !== undefined)
      await page.screenshot({ path: `${folder}/evidence-${width}.png`, fullPage: true });
    await page.context().close();
  }
});
