// Whatever somebody else has written is text on every page of the dashboard, in a real Chromium at a real service.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { Page } from "playwright-core";
import { submitHostedForm } from "../caller.ts";
import { openDashboardStage, type DashboardStage } from "./dashboard-stage.ts";

let stage: DashboardStage;
let url: string;

before(async () => {
  stage = await openDashboardStage();
  url = stage.operators.service.url;
});

after(async () => await stage?.[Symbol.asyncDispose]());

/** Each as a name, metadata, a value and a key of a record: what is typed here comes back as text, or not at all. */
const HOSTILE = [
  "<img src=x onerror=hostile()>",
  "<script>hostile()</script>",
  `"><svg onload=hostile()>`,
  "javascript:hostile()",
  "{{constructor.constructor('hostile()')()}}",
  "</title><script>hostile()</script>",
  "<a href='https://evil.example/'>click</a>",
  "\u202Egnp.exe",
];

test("what comes from outside is text, wherever it is shown", async () => {
  const run = await stage.trigger(
    "supplier-invoices",
    HOSTILE.map((text) => ({ number: text, supplier: "", total: -1, [text]: text })),
    { run_name: HOSTILE.join(" ").slice(0, 250), note: HOSTILE.join(" "), [HOSTILE[0] ?? ""]: "x" },
  );
  const review = await stage.waitForReview(run);
  const page = await stage.openPage("admin", `/runs/${run}`);
  // Text that reaches it has broken out of its place.
  await page.evaluate("window.hostile = () => { document.title = 'hostile'; window.isBroken = true; }");
  await page
    .getByText(HOSTILE[1] ?? "")
    .first()
    .waitFor();
  for (const path of ["/runs", `/runs/${run}`, `/reviews/${review}`, "/reviews", ""]) {
    await page.evaluate(`history.pushState(null, "", ${JSON.stringify(`${url}/dashboard${path}`)})`);
    await page.getByRole("heading", { level: 1 }).waitFor();
    await page.locator("[aria-busy=true]").first().waitFor({ state: "detached" });
    const seen = await page.evaluate(
      "[window.isBroken === true, document.querySelectorAll('#root img, #root script, #root a[href*=evil], #root [onload], #root [onerror]').length]",
    );
    assert.deepEqual(seen, [false, 0], path);
  }
  await page.goto(`${url}/dashboard/reviews/${review}`);
  assert.equal(await page.getByLabel("number of record 2").inputValue(), HOSTILE[1]);
  await page.getByRole("button", { name: "Approve" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Approve" }).click();
  await page.getByText("Decided by").waitFor();
  await page.goto(`${url}/dashboard/runs/${run}`);
  await page
    .getByRole("region", { name: "Records" })
    .getByRole("cell", { name: HOSTILE[1] ?? "" })
    .first()
    .waitFor();
  assert.equal(await page.locator("#root img, #root script").count(), 0);
  await page.context().close();
});

/** In YAML, as one string. */
const all = JSON.stringify(HOSTILE.join(" "));

/** Every text that the author of a document may choose. */
const documents = (target: string): readonly string[] => [
  `account: acme\nname: ${JSON.stringify(HOSTILE[0])}`,
  `strategy: strat_hostile
account: acme
name: ${all}
description: ${all}
hosts: [${target}]
fields:
  - { key: token, type: password, label: ${all}, help: ${all} }
  - { key: region, type: select, label: ${all}, options: [{ value: x, label: ${all} }] }
login: { type: none }`,
  `blueprint: hostile
account: acme
name: ${all}
description: ${all}
nodes:
  - { id: data, type: input, refKey: data, name: ${all} }
  - { id: rows, type: parse, name: ${all}, from: data, format: json }
  - { id: look, type: review, name: ${all}, from: rows, title: ${all}, instructions: ${all} }
  - { id: out, type: output, refKey: out, from: look }`,
];

test(
  "what authors, customers and operators have written is text on the pages that set things up",
  { timeout: 400_000 },
  async () => {
    const { operators, caller } = stage;
    await operators.installation.apply(...documents("http://127.0.0.1:9"));
    await operators.installation.apply(
      ...documents("http://127.0.0.1:9").map((each) => `${each}\n# ${HOSTILE[1]}`),
    );
    const { body: session, text } = await caller.post("/credential-sessions", {
      strategy_id: "strat_hostile",
      name: HOSTILE.join(" ").slice(0, 200),
    });
    assert.ok(session.hosted_url, text);
    await submitHostedForm(session.hosted_url, { token: "canary-value", region: "x" });
    await operators.installation.createKey("acme", { name: HOSTILE[0] ?? "" });
    const run = await stage.trigger("hostile", [{ a: 1 }], { run_name: HOSTILE[2] ?? "" });
    const review = await stage.waitForReview(run);
    const page = await stage.openPage("admin", "/blueprints");
    for (const [path, shown] of [
      ["/blueprints", 1],
      ["/blueprints/acme/hostile", 1],
      ["/blueprints/acme/hostile?tab=document", 0],
      ["/blueprints/acme/hostile?tab=versions", 0],
      ["/blueprints/acme/hostile?tab=try", 0],
      ["/strategies", 1],
      ["/strategies/acme/strat_hostile", 1],
      ["/strategies/acme/strat_hostile?tab=document", 0],
      ["/strategies/acme/strat_hostile?tab=credentials", 1],
      ["/credentials", 1],
      ["/sessions", 0],
      ["/accounts", 1],
      ["/accounts/acme", 0],
      ["/keys", 1],
      ["/audit", 0],
      ["/operators", 0],
      ["/system", 0],
      ["", 0],
      [`/runs/${run}`, 1],
      [`/reviews/${review}`, 1],
    ] as const) {
      await page.goto(`${url}/dashboard${path}`);
      await assertText(page, path);
      if (shown > 0)
        await page
          .getByText("<img src=x onerror=hostile()>")
          .or(page.getByText("<svg onload"))
          .first()
          .waitFor();
    }
    await page.context().close();
  },
);

/** What would have been run calls a function that nobody has made, or has left an element behind. The editor's own images have no source. */
async function assertText(page: Page, path: string): Promise<void> {
  await page.getByRole("heading", { level: 1 }).waitFor();
  await page.locator("[aria-busy=true]").first().waitFor({ state: "detached" });
  const left = await page.evaluate(
    "document.querySelectorAll('#root img:not(.cm-widgetBuffer):not([src^=\"data:\"]), #root script, #root a[href*=evil], #root a[href^=javascript], #root [onload], #root [onerror]').length",
  );
  assert.equal(left, 0, path);
}

test("no browser has complained, of the policy, of a script, or of a request elsewhere", () => {
  assert.deepEqual(stage.problems, []);
});
