// The pages that set things up, in a real Chromium at a real service: an operator writes a Blueprint, tries it, and looks after the rest.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { Page } from "playwright-core";
import { submitHostedForm } from "../caller.ts";
import { until } from "../eventually.ts";
import { axeLightAndDark } from "../axe.ts";
import { choose, openDashboardStage, type DashboardStage } from "./dashboard-stage.ts";

const STRATEGY = `strategy: strat_portal
account: acme
name: Supplier portal
fields: [{ key: token, type: password, label: Access token }]
login: { type: none }`;

const BANK = `{ strategy: strat_bank, account: acme, name: Bank, hosts: ["https://api.northwind.example"],
login: { type: oauth2, client_id: latchkey, client_secret: { secret: NORTHWIND }, issuer: "https://login.northwind.example" } }`;

const WRITTEN_ELSEWHERE = `blueprint: written-here
account: acme
name: Elsewhere
nodes:
  - { id: data, type: input, refKey: data }
  - { id: rows, type: parse, from: data, format: json }
  - { id: out, type: output, refKey: rows, from: rows }`;

let stage: DashboardStage;
let page: Page;
/** Where the checker has put a style sheet of its own, which the page's policy refuses. */
const checked = new Set<string>();

before(async () => {
  stage = await openDashboardStage();
  await stage.operators.installation.apply(STRATEGY, BANK);
  const { body: session } = await stage.caller.post("/credential-sessions", {
    strategy_id: "strat_portal",
    name: "Portal of Northwind",
  });
  await submitHostedForm(session.hosted_url, { token: "canary-value" });
  page = await stage.openPage("admin", "/blueprints");
});

after(async () => await stage?.[Symbol.asyncDispose]());

const goTo = async (path: string, heading: string): Promise<void> => {
  await page.goto(`${stage.operators.service.url}/dashboard${path}`);
  await page.getByRole("heading", { name: heading, level: 1 }).waitFor();
};

async function assertAccessible(what: string): Promise<void> {
  checked.add(`${page.url()}: Applying inline style`);
  assert.deepEqual(await axeLightAndDark(page), [], what);
}

test("a Blueprint is written with its problems beside it, published, tried, and published again as it was", async () => {
  await page.getByRole("link", { name: "New Blueprint" }).click();
  const editor = page.getByRole("textbox", { name: "The new document" });
  await editor.waitFor();
  await page.getByText("Valid", { exact: true }).waitFor();
  await assertAccessible("the editor");
  await editor.press("Control+a");
  await page.keyboard.insertText(
    "blueprint: written-here\naccount: acme\nname: Written here\nnodes:\n  - { id: data, type: input, refKey: data }\n  - { id: rows, type: parse, from: data, format: json }\n  - { id: out, type: output, refKey: rows, from: rows }\n  - { id: more, type: parse, from: data, format: csv }\n",
  );
  // What is left to chance is marked, and does not keep it from being published.
  await page.getByText("Valid, 1 warning").waitFor();
  await page
    .getByRole("list", { name: "Warnings" })
    .getByRole("button", { name: /^Line 8: nodes\[3\] nothing reads the output of the node `more`/ })
    .waitFor();
  await assertAccessible("warnings");
  assert.equal(await page.getByRole("button", { name: "Publish…" }).isDisabled(), false);
  await editor.press("Control+a");
  await page.keyboard.insertText(
    "blueprint: written-here\naccount: acme\nname: Written here\nnodes:\n  - { id: data, type: input, refKey: data }\n  - { id: rows, type: parse, from: dta, format: json }\n  - { id: out, type: output, refKey: rows, from: rows }\n",
  );
  const problem = page.getByRole("button", { name: /^Line 6: nodes\[1\]\.from there is no node `dta`/ });
  await problem.waitFor();
  await assertAccessible("problems");
  await problem.click();
  assert.equal(await page.getByRole("button", { name: "Publish…" }).isDisabled(), true);
  // The cursor stands where the problem is: what is typed goes there.
  await page.keyboard.press("Delete");
  await page.keyboard.press("Delete");
  await page.keyboard.press("Delete");
  await page.keyboard.insertText("data");
  await page.getByText("Valid", { exact: true }).waitFor();
  await page.getByRole("region", { name: "Graph of the Blueprint" }).waitFor();
  await page.getByRole("button", { name: "Publish…" }).click();
  await page.getByText("Create the blueprint written-here of acme").waitFor();
  await page.getByRole("button", { name: "Publish", exact: true }).click();
  await page.getByRole("heading", { name: "Written here", level: 1 }).waitFor();
  await assertAccessible("a Blueprint");

  await page.getByRole("tab", { name: "Document" }).click();
  const document = page.getByRole("textbox", { name: "The Blueprint's document" });
  await document.press("Control+End");
  await page.keyboard.insertText("timeout: 5m\n");
  // What is not published survives another tab of the page, another page, and a reload.
  await page.getByRole("tab", { name: "Overview" }).click();
  await page.getByRole("link", { name: "Blueprints", exact: true }).click();
  await page.getByRole("link", { name: "Written here" }).click();
  await page.getByRole("tab", { name: "Document" }).click();
  await document.getByText("timeout: 5m").waitFor();
  await page.reload();
  await document.getByText("timeout: 5m").waitFor();
  await page.getByText("Unpublished changes").waitFor();
  await assertAccessible("a draft");
  await page.getByRole("button", { name: "Discard changes" }).click();
  await document.getByText("timeout: 5m").waitFor({ state: "detached" });
  await document.press("Control+End");
  await page.keyboard.insertText("timeout: 5m\n");
  // Somebody else publishes meanwhile: both sides are shown before one replaces the other.
  await stage.operators.installation.apply(WRITTEN_ELSEWHERE);
  await page.getByRole("button", { name: "Publish…" }).click();
  const asking = page.getByRole("dialog", { name: "Review changes" });
  await asking.getByText("The command line published version 2").waitFor();
  await asking.getByRole("region", { name: "Changes in version 2" }).getByText('"Elsewhere"').waitFor();
  await asking.getByRole("region", { name: "Your changes" }).getByText("timeout", { exact: true }).waitFor();
  await assertAccessible("a conflict");
  await asking.getByRole("button", { name: "Publish over version 2" }).click();
  await page.getByText("5 min", { exact: true }).waitFor();
  await page.getByRole("heading", { name: "Written here", level: 1 }).waitFor();

  await page.getByRole("tab", { name: "Versions" }).click();
  await page.getByRole("button", { name: "View version 3" }).click();
  await page.getByText('"5m"').waitFor();
  await assertAccessible("versions");
  await page.getByRole("button", { name: "Publish again version 1" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Publish", exact: true }).click();
  await page.getByRole("button", { name: "View version 4" }).waitFor();

  await page.getByRole("tab", { name: "Try it" }).click();
  await page.getByLabel("data").fill('[{"n": 1}]');
  await assertAccessible("trying");
  await page.getByRole("button", { name: "Start run" }).click();
  await page.waitForURL(/\/runs\/run_/);
  const id = /run_\w+/.exec(page.url())?.[0] ?? assert.fail(page.url());
  assert.equal((await stage.caller.waitForRun(id, 100_000)).body.status, "completed");
});

test("the editor completes what may stand at a place", async () => {
  await goTo("/blueprints/new", "New Blueprint");
  const editor = page.getByRole("textbox", { name: "The new document" });
  await editor.press("Control+End");
  await page.keyboard.insertText("  - id: look\n    type: rev");
  await page.keyboard.press("Control+Space");
  await page.getByRole("option", { name: "review" }).click();
  await page.keyboard.press("Enter");
  await page.keyboard.insertText("instr");
  await page.keyboard.press("Control+Space");
  await page.getByRole("option", { name: "instructions" }).waitFor();
});

test("a strategy shows the form that it makes, also while it is written", async () => {
  await goTo("/strategies/acme/strat_portal", "Supplier portal");
  const preview = page.getByRole("region", { name: "Preview of the form" }).frameLocator("iframe");
  await preview.getByLabel("Access token", { exact: true }).waitFor();
  await preview.getByRole("button", { name: "Show Access token" }).waitFor();
  await assertAccessible("a strategy");
  await page.getByRole("tab", { name: "Document" }).click();
  const editor = page.getByRole("textbox", { name: "The strategy's document" });
  await editor.press("Control+Home");
  await page.keyboard.press("End");
  await page.keyboard.press("Enter");
  await page.keyboard.insertText("description: Only for reading");
  await preview.getByText("Only for reading").waitFor();
  await page.getByRole("button", { name: "Publish…" }).click();
  await page.getByRole("button", { name: "Publish", exact: true }).click();
  await page.getByText("Version", { exact: true }).waitFor();
});

test("an account is changed; what is wrong is said beside its field", async () => {
  await goTo("/accounts/acme", "Acme Inc.");
  const origins = page.getByLabel("Allowed return origins");
  await origins.fill("app.example.com");
  await page.getByRole("button", { name: "Save changes" }).click();
  await page.getByText("Line 1: an origin is only scheme, host and port").waitFor();
  await assertAccessible("an error beside its field");
  await origins.fill("https://app.example.com");
  await page.getByRole("button", { name: "Save changes" }).click();
  await page.getByText("Changes saved.").waitFor();
  await assertAccessible("an account");
  const form = page.getByRole("region", { name: "Settings" });
  await form.getByLabel("Retention").fill("a month");
  await form.getByRole("button", { name: "Save changes" }).click();
  await form.locator("input[aria-invalid=true]").waitFor();
  await form.getByLabel("Retention").fill("45d");
  await form.getByLabel("Other origins may embed the form").check();
  await form.getByLabel("Origins that may embed the form").fill("https://portal.example.com");
  await form.getByLabel("Second factor for reviews").selectOption("Always");
  await form.getByLabel("Limit the requests of each API key").uncheck();
  await form.getByLabel("Support URL for end users").fill("https://help.example.com");
  await form.getByRole("button", { name: "Save changes" }).click();
  const saved = async (): Promise<unknown> => {
    const rows = await stage.operators.db.query<{ document: string }>(
      "select document from account where slug = 'acme'",
    );
    return JSON.parse(rows[0]?.document ?? "{}");
  };
  await until("it is saved", async () => JSON.stringify(await saved()).includes("45d"));
  assert.deepEqual(await saved(), {
    account: "acme",
    allowed_origins: ["https://app.example.com"],
    branding: { support_url: "https://help.example.com" },
    embed_origins: ["https://portal.example.com"],
    name: "Acme Inc.",
    rate_limit: "off",
    retention: "45d",
    review_step_up: "always",
  });
  await assertAccessible("all settings of an account");
});

test("an API key is made, shown once, rotated after a question that says what ends and when, and revoked", async () => {
  await goTo("/keys", "API keys");
  await page.getByRole("button", { name: "New key" }).click();
  await page.getByLabel("Label").fill("From the dashboard");
  await page.getByRole("button", { name: "Create key" }).click();
  await page.getByText(/^lk_/).waitFor();
  await page.getByRole("button", { name: "I've saved it" }).click();
  const count = async (): Promise<number> =>
    (await stage.operators.db.query("select 1 from api_key where name = 'From the dashboard'")).length;
  const dialog = page.getByRole("dialog");
  await page.getByRole("button", { name: "Rotate From the dashboard" }).click();
  await dialog
    .getByText(/Callers that still use From the dashboard are rejected after \d+ \w+ \d{4}/)
    .waitFor();
  await assertAccessible("a question about a key");
  await dialog.getByRole("button", { name: "Cancel" }).click();
  assert.equal(await count(), 1, "nothing was asked of the service");
  await page.getByRole("button", { name: "Rotate From the dashboard" }).click();
  await dialog.getByLabel("Keep the old key working for").selectOption("Revoke immediately");
  await dialog.getByText("are rejected from now on").waitFor();
  await dialog.getByRole("button", { name: "Rotate" }).click();
  await page.getByText(/^lk_/).waitFor();
  await page.getByRole("button", { name: "I've saved it" }).click();
  await page.getByRole("row", { name: /From the dashboard.*Revoked/ }).waitFor();
  assert.equal(await count(), 2);
  await page.getByRole("button", { name: "Revoke From the dashboard" }).click();
  await dialog.getByRole("button", { name: "Revoke" }).click();
  await page.getByRole("button", { name: "Revoke From the dashboard" }).waitFor({ state: "detached" });
  await assertAccessible("keys");
});

test("an account secret is kept for its origins, replaced and deleted, and no page shows its value", async () => {
  const canary = "dashboard-secret-canary-6Pq";
  await goTo("/secrets", "Account secrets");
  await page.getByRole("heading", { name: "No secrets yet" }).waitFor();
  await page.getByText("uses the secret NORTHWIND, which the account does not have").waitFor();
  await page.getByRole("button", { name: "Set NORTHWIND" }).click();
  const dialog = page.getByRole("dialog");
  assert.equal(await dialog.getByLabel("Name").inputValue(), "NORTHWIND");
  assert.ok(!(await page.content()).includes("latchkey secrets set --account acme NORTHWIND"));
  await dialog.getByLabel("Allowed origins").fill("https://login.northwind.example/token");
  const value = dialog.getByRole("textbox", { name: "Value" });
  await value.fill(canary);
  assert.equal(await value.getAttribute("type"), "password");
  await assertAccessible("a new secret");
  await dialog.getByRole("button", { name: "Save secret" }).click();
  await dialog.getByText("write https://login.northwind.example").first().waitFor();
  await dialog.getByLabel("Allowed origins").fill("https://login.northwind.example");
  await dialog.getByRole("button", { name: "Save secret" }).click();
  await page.getByRole("row", { name: /NORTHWIND.*https:\/\/login\.northwind\.example/ }).waitFor();
  await page.getByRole("link", { name: "strat_bank" }).waitFor();
  assert.equal(await page.getByText("which the account does not have").count(), 0);
  await assertAccessible("account secrets");

  await page.getByRole("button", { name: "Replace NORTHWIND" }).click();
  assert.equal(await dialog.getByRole("textbox", { name: "Value" }).inputValue(), "");
  await dialog.getByRole("textbox", { name: "Value" }).fill(`${canary}-2`);
  await dialog.getByRole("button", { name: "Replace secret" }).click();
  await dialog.waitFor({ state: "detached" });
  await page.getByRole("button", { name: "Delete NORTHWIND" }).click();
  await dialog.getByText("strat_bank uses NORTHWIND: sign-ins and runs of this strategy fail").waitFor();
  assert.ok(!(await page.content()).includes(canary));
  await dialog.getByRole("button", { name: "Delete permanently" }).click();
  await page.getByRole("heading", { name: "No secrets yet" }).waitFor();
});

test("a pending session's link is shown on demand, and revoked after a question", async () => {
  const { body } = await stage.caller.post("/credential-sessions", {
    strategy_id: "strat_portal",
    name: "Portal of Eastfield",
  });
  await goTo(`/sessions/${body.id}`, "Portal of Eastfield");
  assert.ok(!(await page.content()).includes(body.hosted_url));
  await page.getByRole("button", { name: "Show the link" }).click();
  await page.getByText(body.hosted_url).waitFor();
  await assertAccessible("a pending session");
  await page.getByRole("button", { name: "Revoke the session" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Revoke the session" }).click();
  await page.getByText("The session has expired.").waitFor();
  assert.equal((await stage.caller.get(`/credential-sessions/${body.id}`)).body.status, "expired");
});

test("a credential is deleted after a question; the audit log knows, and every chain is in order", async () => {
  await goTo("/sessions", "Sessions");
  await page.getByRole("cell", { name: "Completed", exact: true }).waitFor();
  await assertAccessible("sessions");
  await page.getByRole("link", { name: "Portal of Northwind" }).click();
  await page.getByRole("heading", { name: "Portal of Northwind", level: 1 }).waitFor();
  await page.getByText("Its link accepts nothing more").waitFor();
  await assertAccessible("a session");
  await goTo("/credentials", "Credentials");
  await assertAccessible("credentials");
  // Found by its name from anywhere.
  await page.keyboard.press("Control+k");
  await page.getByRole("textbox", { name: "Search" }).fill("northwi");
  await page.getByRole("option", { name: /Portal of Northwind\s*Credential/ }).click();
  await page.getByRole("region", { name: "Used by" }).getByText("Not used yet").waitFor();
  await assertAccessible("a credential");
  assert.ok(!(await page.content()).includes("canary-value"));
  await goTo("/credentials", "Credentials");
  assert.ok(!(await page.content()).includes("canary-value"));
  await page.getByRole("link", { name: "Portal of Northwind" }).click();
  await page.getByRole("button", { name: /^Delete/ }).click();
  await assertAccessible("a question");
  await page.getByRole("button", { name: "Delete permanently" }).click();
  await page.getByRole("heading", { name: "No credentials yet" }).waitFor();
  await goTo("/audit", "Audit log");
  await page.getByLabel("Action").selectOption("Credential deleted");
  const entry = page.getByRole("row", { name: /Credential deleted/ }).first();
  await entry.getByRole("link", { name: /^cred_/ }).waitFor();
  await page.getByRole("button", { name: "Verify integrity" }).click();
  await page.getByText("Verified", { exact: true }).waitFor();
  await assertAccessible("the audit log");
  const download = page.waitForEvent("download");
  await page.getByRole("link", { name: "Export" }).click();
  assert.equal((await download).suggestedFilename(), "latchkey-audit.ndjson");
});

const changesOf = async (email: string): Promise<number> =>
  (
    await stage.operators.db.query(
      `select 1 from audit_entry where subject_id = (select id from operator where email = $1) and action <> 'operator.create'`,
      [email],
    )
  ).length;

test("an operator is made, gets another role, and is disabled; the system tells how it is", async () => {
  await goTo("/operators", "Operators");
  await page.getByRole("button", { name: "New operator" }).click();
  await page.getByLabel("Email").fill("new@example.com");
  await page.getByRole("button", { name: "Create operator" }).click();
  await page.getByRole("button", { name: "I've saved it" }).click();
  const dialog = page.getByRole("dialog");
  const role = dialog.getByLabel("Role of new@example.com");
  const row = page.getByRole("row", { name: /new@example\.com/ });
  await choose(page, "new@example.com", "Change role");
  await role.selectOption("admin");
  await dialog.getByText("Make new@example.com an admin?").waitFor();
  await dialog.getByText("Can do everything").waitFor();
  await assertAccessible("a question about a role");
  await dialog.getByRole("button", { name: "Cancel" }).click();
  await choose(page, "new@example.com", "New password");
  await dialog.getByText("stops working now").waitFor();
  await dialog.getByRole("button", { name: "Cancel" }).click();
  assert.equal(await changesOf("new@example.com"), 0, "nothing was asked of the service");
  await choose(page, "new@example.com", "Change role");
  await role.selectOption("reviewer");
  await dialog.getByRole("button", { name: "Change role" }).click();
  await dialog.waitFor({ state: "detached" });
  await row.getByText("reviewer", { exact: true }).waitFor();
  assert.equal(await changesOf("new@example.com"), 1);
  await choose(page, "new@example.com", "Disable");
  await page.getByRole("dialog").getByRole("button", { name: "Disable" }).click();
  await page.getByRole("row", { name: /new@example\.com.*Disabled/ }).waitFor();
  await assertAccessible("operators");
  await goTo("/system", "System");
  await page.getByText("Healthy").first().waitFor();
  await assertAccessible("the system");
  for (const heading of ["Accounts", "Blueprints", "Strategies"]) {
    await goTo(`/${heading.toLowerCase()}`, heading);
    await assertAccessible(heading);
  }
});

test("a viewer sees documents and can change nothing", async () => {
  const viewer = await stage.openPage("viewer", "/blueprints/acme/plain-list?tab=document");
  await viewer.getByText("blueprint: plain-list").waitFor();
  assert.equal(await viewer.getByRole("button", { name: /Publish|Retire/ }).count(), 0);
  assert.equal(await viewer.getByRole("tab", { name: "Try it" }).count(), 0);
  assert.equal(await viewer.getByRole("link", { name: "API keys" }).count(), 0);
  // Without a network the page that was not loaded yet comes when it is back.
  await viewer.context().setOffline(true);
  await viewer.getByText("This page may be out of date").waitFor();
  await viewer.getByRole("link", { name: "System" }).click();
  await viewer.getByText("It opens by itself").waitFor();
  assert.equal(await viewer.getByText("upgraded").count(), 0);
  await viewer.context().setOffline(false);
  await viewer.getByRole("heading", { name: "System", level: 1 }).waitFor();
  assert.equal(await viewer.getByText("You are offline").count(), 0);
  await viewer.context().close();
});

test("no browser has complained, of the policy, of a script, or of a request elsewhere", () => {
  const ofPages = stage.problems.filter((problem) => ![...checked].some((each) => problem.startsWith(each)));
  assert.deepEqual(ofPages, []);
});
