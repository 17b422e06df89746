// What an operator comes for, from the overview, by mouse with counted clicks and by keyboard: in a real Chromium at a real service.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { BrowserContextOptions, Page } from "playwright-core";
import { until } from "../eventually.ts";
import { axe, axeLightAndDark } from "../axe.ts";
import { connect } from "../caller.ts";
import { startTarget } from "../flow/target.ts";
import { passwordLogin } from "../password-login.ts";
import { lowContrast } from "../contrast.ts";
import { inTier } from "../tiers.ts";
import { openDashboardStage, type DashboardStage } from "./dashboard-stage.ts";

let stage: DashboardStage;

before(async () => {
  stage = await openDashboardStage();
});

after(async () => await stage?.[Symbol.asyncDispose]());

const SIZES = [
  [1440, 900],
  [390, 844],
] as const;

/** A page that counts the presses of the mouse. */
async function openCounted(path: string, options: BrowserContextOptions = {}) {
  const page = await stage.openPage("admin", path, options);
  await page.evaluate(
    "addEventListener('pointerdown', () => { globalThis.presses = (globalThis.presses ?? 0) + 1; }, true)",
  );
  return { page, clicks: async () => Number(await page.evaluate("globalThis.presses ?? 0")) };
}

const focused = async (page: Page): Promise<string> =>
  await page.evaluate<string>(
    "document.activeElement.getAttribute('aria-label') ?? document.activeElement.textContent",
  );

const waitForFocus = async (page: Page, name: string): Promise<void> =>
  await until(`the focus is on ${name}`, async () => (await focused(page)) === name);

/** Presses Tab until the focus is on what has this name. */
async function tabTo(page: Page, name: string): Promise<void> {
  for (let presses = 0; presses < 80; presses++) {
    if ((await focused(page)) === name) return;
    await page.keyboard.press("Tab");
  }
  assert.fail(`Tab does not reach ${name}; the focus is on ${await focused(page)}`);
}

const records = (count: number, isWrong: (n: number) => boolean) =>
  Array.from({ length: count }, (_, n) => ({
    number: `RE-${n}`,
    supplier: isWrong(n) ? "" : "Northwind",
    total: n + 1,
  }));

/** A review of the customer's records; its id. */
async function review(customer: string, of: readonly unknown[]): Promise<string> {
  const named = { run_name: `Invoices of ${customer}`, note: customer };
  return await stage.waitForReview(await stage.trigger("supplier-invoices", of, named));
}

test("a review is approved with three clicks, and the next one is there; whose it is, is said", async () => {
  await review(
    "Hofbauer Logistik",
    records(3, (n) => n === 1),
  );
  const second = await review(
    "Miller & Sons",
    records(3, (n) => n === 2),
  );
  const { page, clicks } = await openCounted("");
  const first = page.getByRole("listitem").filter({ hasText: "Hofbauer Logistik" });
  await first.getByRole("link", { name: "Invoices of Hofbauer Logistik" }).click();
  await page.getByRole("heading", { name: "Invoices of Hofbauer Logistik", level: 1 }).waitFor();
  await page.getByText(/go to the results.* 1 record still has errors: it goes with them, marked/).waitFor();
  await page.getByRole("button", { name: "Approve 3 records, 1 with errors" }).waitFor();
  await page.getByText(/^Decide by .*, or the run fails$/).waitFor();
  await page.getByText("1 of 2 open").waitFor();
  await page.getByRole("link", { name: "supplier-invoices, node look" }).waitFor();
  await page.getByRole("button", { name: "Approve" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Exclude 1 and approve" }).click();
  await page.getByRole("heading", { name: "Invoices of Miller & Sons", level: 1 }).waitFor();
  assert.equal(await clicks(), 3);
  assert.equal(new URL(page.url()).pathname, `/dashboard/reviews/${second}`);
  assert.equal(
    await focused(page),
    "Invoices of Miller & Sons",
    "a screen reader reads the new page's title",
  );
  // The decided review's run is one click away.
  const message = page.getByRole("alert").filter({ hasText: "Approved. The run continues." });
  await message.getByRole("link", { name: "Invoices of Hofbauer Logistik" }).waitFor();
  await page.context().close();
});

test("by keyboard alone: the next error, an edit, what it changes, the approval", async () => {
  const id = await review(
    "Keyboard Ltd.",
    records(300, (n) => n === 250 || n === 260),
  );
  const { page, clicks } = await openCounted(`/reviews/${id}`);
  await page.getByLabel("supplier of record 251", { exact: true }).waitFor();
  await page.keyboard.press("F8");
  await waitForFocus(page, "supplier of record 251");
  await page.keyboard.type("Southgate");
  await page.keyboard.press("F8");
  await waitForFocus(page, "supplier of record 261");
  await page.getByText("1 with errors left").waitFor();
  await page.keyboard.type("Eastside");
  await page.getByText("No errors left").waitFor();
  await page.keyboard.press("Control+Enter");
  const changes = page.getByRole("dialog").getByRole("region", { name: "Changes" });
  await changes.getByText("Record 251: supplier").waitFor();
  assert.match(await changes.innerText(), /""\s+"Southgate"[\s\S]*Record 261: supplier\s+""\s+"Eastside"/);
  await tabTo(page, "Approve");
  await page.keyboard.press("Enter");
  await page.getByRole("alert").filter({ hasText: "Approved. The run continues." }).waitFor();
  assert.equal(await clicks(), 0);
  await page.context().close();
});

test("many records are edited together, excluded and undone; at 1440 and 390 px axe finds nothing", async () => {
  const id = await review(
    "Bulk Ltd.",
    records(60, (n) => n % 2 === 1),
  );
  const { page } = await openCounted(`/reviews/${id}`, { viewport: { width: 1440, height: 900 } });
  const bulk = page.getByRole("region", { name: "Edit many at once" });
  await page.getByLabel("Select record 2", { exact: true }).click();
  await page.getByLabel("Select record 8", { exact: true }).click({ modifiers: ["Shift"] });
  await bulk.getByText("4 selected").waitFor();
  await bulk.getByRole("button", { name: "Exclude selected" }).click();
  await page.getByText("26 records with errors, 4 excluded").waitFor();
  await page.getByRole("button", { name: "Approve 56 records" }).waitFor();
  await bulk.getByRole("button", { name: "Include selected" }).click();
  await page.getByText("30 records with errors", { exact: true }).waitFor();
  await bulk.getByRole("button", { name: "Select all 30" }).click();
  await bulk.getByText("30 selected").waitFor();
  await bulk.getByLabel("Field").selectOption("supplier");
  await bulk.getByLabel("New value").fill("Southgate");
  await bulk.getByRole("button", { name: "Set in 30" }).click();
  await page.getByText("30 edited", { exact: true }).waitFor();
  await page.getByText("No errors left").waitFor();
  assert.equal(await page.getByLabel("supplier of record 8", { exact: true }).inputValue(), "Southgate");
  await bulk.getByLabel("Field").selectOption("total");
  await bulk.getByLabel("New value").fill("none");
  await bulk.getByRole("button", { name: "Set in 30" }).click();
  await page.getByText("Some edits are invalid").waitFor();
  for (const [width, height] of inTier(SIZES, ([each]) => each === 390)) {
    await page.setViewportSize({ width, height });
    assert.deepEqual(await axeLightAndDark(page), [], `${width}`);
    assert.equal(await page.evaluate("document.documentElement.scrollWidth > innerWidth"), false);
  }
  await page.setViewportSize({ width: 1440, height: 900 });
  await bulk.getByRole("button", { name: "Undo selected" }).click();
  await page.getByText("30 records with errors", { exact: true }).waitFor();
  await page.context().close();
});

test("two people at one review see each other, who has changes, and when one has left", async () => {
  const id = await review(
    "Two Ltd.",
    records(3, (n) => n === 1),
  );
  const { page } = await openCounted(`/reviews/${id}`);
  await page.getByLabel("supplier of record 2", { exact: true }).waitFor();
  const others = page.getByRole("status", { name: "Others at this review" });
  assert.equal(await others.innerText(), "");
  const second = await stage.openPage("reviewer", `/reviews/${id}`);
  await others.getByText("has this review open").waitFor();
  const seen = second.getByRole("status", { name: "Others at this review" });
  await seen.getByText("has this review open").waitFor();
  await second.getByLabel("supplier of record 2").fill("Southgate");
  await others.getByText("has unsent changes").waitFor();
  // Messages are rare: none of them is sent while nobody comes, leaves, or begins to edit.
  let sent = 0;
  page.on("request", (request) => (sent += request.url().endsWith("/presence") ? 1 : 0));
  await second.getByLabel("supplier of record 2").fill("Southgate & Sons");
  await page.waitForTimeout(1_000);
  assert.equal(sent, 0);
  assert.deepEqual(await axe(page), []);
  await second.getByRole("link", { name: "Overview" }).click();
  await others.getByText("has unsent changes").waitFor({ state: "detached" });
  await second.context().close();
  await page.context().close();
});

test("the failed run of a customer is found with two clicks and part of the name, and says why", async () => {
  const named = { run_name: "Invoices of Hofbauer Logistik, week 47", note: "Hofbauer Logistik" };
  const run = await stage.trigger("plain-list", "no JSON", named);
  await stage.caller.waitForRun(run, 100_000);
  const { page, clicks } = await openCounted("");
  const field = page.getByRole("dialog", { name: "Search" }).getByLabel("Search");
  await page.getByRole("button", { name: "Search" }).click();
  await field.fill("ofbauer log");
  await page.getByRole("listbox", { name: "Results" }).getByText("week 47").click();
  await page.waitForURL(`**/runs/${run}`);
  await page.getByText("Invalid data").waitFor();
  assert.equal(await clicks(), 2);
  await page.keyboard.press("/");
  await field.waitFor();
  assert.equal(await field.inputValue(), "", "the key is none of the text");
  await page.context().close();
});

test("from a failed login it takes four clicks to an unlocked credential and a run that goes well", async (context) => {
  let isRejecting = true;
  const target = await startTarget(({ path }) => {
    if (path === "/login") return { status: isRejecting ? 401 : 204 };
    return { body: { items: [{ supplier: "Northwind", total: 1 }] } };
  });
  context.after(async () => await target.close());
  await stage.operators.installation.apply(
    `strategy: strat_shop\naccount: acme\nname: Shop\nhosts: [${target.url}]\n${passwordLogin(204)}`,
    `blueprint: orders
account: acme
hosts: [${target.url}]
credentials: { shop: { strategy: strat_shop } }
nodes:
  - { id: read, type: http, credential: shop, request: { method: GET, url: /orders }, records: items }
  - { id: out, type: output, refKey: orders, from: read }`,
  );
  const credential = await connect(stage.caller, "strat_shop", { username: "ada", password: "p-4711" });
  const start = async () =>
    (await stage.caller.post("/blueprints/orders/trigger", { credential_id: credential })).body.id;
  const run = await start();
  await stage.caller.waitForRun(run);
  // The target's password is right again, and its user is not locked out.
  isRejecting = false;
  const { page, clicks } = await openCounted(`/runs/${run}`);
  await page.getByText("Login failed").first().waitFor();
  await page.getByRole("button", { name: `Unlock ${credential}` }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Unlock" }).click();
  await page.getByText("The credential was unlocked.").waitFor();
  await page.getByRole("button", { name: "Run again" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Run again" }).click();
  await page.getByText("Rerun of").waitFor();
  assert.equal(await clicks(), 4);
  // Announced, without looking: the state is in a live region.
  await page.getByRole("main").getByRole("status").filter({ hasText: "Completed" }).waitFor();
  await page.context().close();
});

test("a change is published over another one that is shown, and rolled back after a look at what that changes", async () => {
  const document = (name: string) => `# The list\nblueprint: listed
account: acme
name: ${name}
nodes:
  - { id: data, type: input, refKey: data }
  - { id: list, type: parse, from: data, format: json }
  - { id: out, type: output, refKey: out, from: list }
`;
  await stage.operators.installation.apply(document("First"));
  const { page, clicks } = await openCounted("/blueprints/acme/listed?tab=document");
  const editor = page.getByRole("textbox", { name: "The Blueprint's document" });
  await editor.getByText("# The list").waitFor();
  await editor.press("Control+End");
  await page.keyboard.insertText("timeout: 5m\n");
  await stage.operators.installation.apply(document("Theirs"));
  await page.getByRole("button", { name: "Publish…" }).click();
  const asking = page.getByRole("dialog", { name: "Review changes" });
  await asking.getByRole("region", { name: "Changes in version 2" }).getByText('"Theirs"').waitFor();
  await asking.getByRole("region", { name: "Your changes" }).getByText('"5m"').waitFor();
  assert.match(await focused(page), /Keep editing/, "the safe choice");
  await asking.getByRole("button", { name: "Publish over version 2" }).click();
  await page.getByRole("dialog").waitFor({ state: "detached" });
  await page.getByRole("tab", { name: "Versions" }).click();
  await page.getByRole("button", { name: "Publish again version 2" }).click();
  const changes = page.getByRole("dialog").getByRole("region", { name: "Changes" });
  await changes.getByText('"Theirs"').waitFor();
  await changes.getByText('"5m"').waitFor();
  await page.getByRole("dialog").getByRole("button", { name: "Publish", exact: true }).click();
  await page.getByRole("button", { name: "View version 4" }).waitFor();
  assert.equal(await clicks(), 5);
  await page.context().close();
});

/** States that a page has only after something was done, each with its page. */
const STATES: readonly (readonly [name: string, path: string, reach: (page: Page) => Promise<void>])[] = [
  ["placeholders", "/audit", async (page) => await page.getByLabel("Subject").waitFor()],
  [
    "placeholders of filters, and a pager that is at its end",
    "/runs?run_name=Invoices",
    async (page) => await page.getByRole("heading", { name: "Runs" }).waitFor(),
  ],
  [
    "wrong and excluded records, an approval that is not possible",
    "/reviews/REVIEW",
    async (page) => {
      await page.getByLabel("total of record 3", { exact: true }).fill("none");
      await page.getByRole("button", { name: "Exclude record 4", exact: true }).click();
      await page.getByText("Some edits are invalid").waitFor();
      assert.equal(await page.getByRole("button", { name: "Approve" }).isDisabled(), true);
    },
  ],
  [
    "a dialog with an error",
    "/reviews/REVIEW",
    async (page) => {
      await page.getByLabel("total of record 3", { exact: true }).fill("7");
      await page.getByRole("button", { name: "Approve" }).click();
      await page.context().setOffline(true);
      await page.getByRole("dialog").getByRole("button", { name: "Approve with errors" }).click();
      await page.getByRole("dialog").getByRole("alert").waitFor();
      await page.context().setOffline(false);
    },
  ],
  [
    "a document without changes, which can't be published",
    "/blueprints/acme/plain-list?tab=document",
    async (page) => {
      await page.getByText("Valid", { exact: true }).waitFor();
      assert.equal(await page.getByRole("button", { name: "Publish…" }).isDisabled(), true);
    },
  ],
  [
    "an error beside its field",
    "/accounts/acme",
    async (page) => {
      await page.getByLabel("Allowed return origins").fill("app.example.com");
      await page.getByRole("button", { name: "Save changes" }).click();
      await page.getByText("Line 1: an origin").waitFor();
    },
  ],
];

const REPRESENTATIVES = new Set([
  "placeholders",
  "wrong and excluded records, an approval that is not possible",
  "a dialog with an error",
  "a document without changes, which can't be published",
]);

for (const [width, height] of inTier(SIZES, ([each]) => each === 390))
  test(`errors, disabled controls, placeholders and dialogs are readable at ${width} px, light and dark`, async () => {
    const id = await review(
      "States Ltd.",
      records(5, (n) => n > 1),
    );
    const { page } = await openCounted("", { viewport: { width, height } });
    const found: string[] = [];
    for (const [name, path, reach] of inTier(STATES, ([each]) => REPRESENTATIVES.has(each))) {
      await page.goto(`${stage.operators.service.url}/dashboard${path.replace("REVIEW", id)}`);
      await page.getByRole("heading", { level: 1 }).waitFor();
      await page.locator("[aria-busy=true]").first().waitFor({ state: "detached" });
      await reach(page);
      const low = [...(await lowContrast(page)), ...(await axeLightAndDark(page))];
      found.push(...low.map((each) => `${name}: ${each}`));
      if (await page.evaluate("document.documentElement.scrollWidth > innerWidth"))
        found.push(`${name}: wider`);
    }
    assert.deepEqual(found, []);
    await page.context().close();
  });

test("Tab goes through a review in the order of what is seen, from the link that skips the navigation", async () => {
  const id = await review(
    "Order Ltd.",
    records(2, () => true),
  );
  const { page } = await openCounted(`/reviews/${id}`);
  await page.getByLabel("supplier of record 1", { exact: true }).waitFor();
  await page.keyboard.press("Tab");
  assert.equal(await focused(page), "Skip to content");
  await page.keyboard.press("Enter");
  const order: string[] = [];
  for (let presses = 0; presses < 60 && order.at(-1) !== "Approve 2 records, 2 with errors"; presses++) {
    await page.keyboard.press("Tab");
    order.push(await focused(page));
  }
  const wanted = [
    "Open the run",
    "note Order Ltd.",
    "Copy the run ID",
    "supplier-invoices, node look",
    "Next error (F8)",
    "Select all 2",
    "Records",
    "Select record 1",
    "supplier of record 1",
    "Exclude record 1",
    "Select record 2",
    "Reject",
    "Approve 2 records, 2 with errors",
  ];
  assert.deepEqual(
    order.filter((name) => wanted.includes(name)),
    wanted,
    order.join(" | "),
  );
  await page.context().close();
});

test("no browser has complained, of the policy, of a script, or of a request elsewhere", () => {
  assert.deepEqual(stage.problems, []);
});
