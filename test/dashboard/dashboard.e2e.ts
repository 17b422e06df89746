// The dashboard in a real Chromium, at a real service with real runs. Names and roles are how the tests find what is on a page.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, before, test } from "node:test";
import { applyConfig } from "#actions/config/apply-config.ts";
import { axeLightAndDark } from "../axe.ts";
import { nextCode, openDashboardStage, type DashboardStage } from "./dashboard-stage.ts";
import { inTier } from "../tiers.ts";
import { rewriteSigned } from "../sign-again.ts";

const RECORDS = [
  { number: "RE-1", supplier: "Northwind", total: 12.5 },
  { number: "RE-2", supplier: "", total: 3 },
];

let stage: DashboardStage;
let url: string;

before(async () => {
  stage = await openDashboardStage();
  url = stage.operators.service.url;
  await stage.trigger("plain-list", RECORDS, { run_name: "Nightly list" });
});

after(async () => await stage?.[Symbol.asyncDispose]());

test("the page and its files come with headers that leave nothing open, compressed, and forever", async () => {
  const first = await fetch(`${url}/`, { redirect: "manual" });
  assert.deepEqual([first.status, first.headers.get("location")], [302, "/dashboard"]);
  const page = await fetch(`${url}/dashboard/runs/anything`);
  const policy = page.headers.get("content-security-policy") ?? "";
  assert.match(policy, /default-src 'none'.*script-src 'self'; .*frame-ancestors 'none'/);
  // The preview of a strategy shows its target's logo by `data:`; nothing else may come from there.
  assert.doesNotMatch(policy.replace("img-src 'self' data:", ""), /unsafe|\*|https?:|data:/);
  assert.equal(page.headers.get("cache-control"), "no-store");
  assert.equal(page.headers.get("x-content-type-options"), "nosniff");
  const text = await page.text();
  const nonce = /'nonce-([\w-]{22})'/.exec(policy)?.[1] ?? assert.fail(policy);
  assert.ok(text.includes(`nonce="${nonce}"`));
  assert.ok(!(await (await fetch(`${url}/dashboard`)).text()).includes(nonce), "another nonce each time");
  const [, script = ""] = /src="\.\/(assets\/[^"]+\.js)"/.exec(text) ?? assert.fail(text);
  for (const [accepted, encoding] of [
    ["gzip, deflate, br", "br"],
    ["gzip, br;q=0", "gzip"],
    ["identity", null],
  ] as const) {
    const file = await fetch(`${url}/dashboard/${script}`, { headers: { "accept-encoding": accepted } });
    assert.equal(file.headers.get("content-encoding"), encoding);
    assert.equal(file.headers.get("content-type"), "text/javascript; charset=utf-8");
    assert.match(file.headers.get("cache-control") ?? "", /immutable/);
    await file.arrayBuffer();
  }
  for (const name of ["none.js", "..%2Findex.html", "%2e%2e%2f%2e%2e%2fcurrent"])
    assert.equal((await fetch(`${url}/dashboard/assets/${name}`)).status, 404, name);
});

test("what a browser loads for its first page is at most 400 KB, compressed with gzip", async () => {
  const built = new URL("../../ui/built/", import.meta.url);
  const folder = new URL(`${readFileSync(new URL("current", built), "utf8").trim()}/`, built);
  const page = readFileSync(new URL("index.html", folder), "utf8");
  const files = [...page.matchAll(/(?:src|href)="\.\/(assets\/[^"]+\.(?:js|css))"/g)].map(
    ([, name = ""]) => name,
  );
  assert.ok(files.length >= 2, page);
  const bytes = files.map((name) => readFileSync(new URL(`${name}.gz`, folder)).length);
  const total = bytes.reduce((sum, each) => sum + each, 0);
  assert.ok(total <= 400_000, `${total} bytes: ${files.join()} ${bytes.join()}`);
});

test("an admin signs in with a code, comes to the page that was asked for, and signs out", async () => {
  const admin = await stage.withApp("admin");
  const context = await stage.newContext();
  const page = await context.newPage();
  await page.goto(`${url}/dashboard/runs?run_name=Nightly`);
  await page.getByLabel("Email").fill(admin.email);
  await page.getByLabel("Password", { exact: true }).fill("not the password");
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("alert").waitFor();
  await page.getByLabel("Password", { exact: true }).fill(admin.password);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByLabel("Code").fill(nextCode(admin.secret));
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("heading", { name: "Runs", level: 1 }).waitFor();
  await page.getByRole("link", { name: "Nightly list" }).waitFor();
  assert.equal(new URL(page.url()).search, "?run_name=Nightly");
  await page.getByRole("button", { name: admin.email }).click();
  await page.getByRole("menuitem", { name: "Sign out" }).click();
  await page.getByRole("heading", { name: "Sign in" }).waitFor();
  await context.close();
});

test("a first admin sets up the second factor, sees the recovery codes once, and is in; axe finds nothing, light and dark", async () => {
  const admin = await stage.operators.operator("admin");
  const context = await stage.newContext({
    colorScheme: "light",
    // What a person's click allows, and a browser without a window does not.
    permissions: ["clipboard-read", "clipboard-write"],
  });
  const page = await context.newPage();
  const assertAccessible = async (what: string): Promise<void> => {
    assert.deepEqual(await axeLightAndDark(page), [], what);
  };
  await page.goto(`${url}/dashboard`);
  await page.getByLabel("Email").waitFor();
  await assertAccessible("the first sign-in");
  await page.getByLabel("Email").fill(admin.email);
  await page.getByLabel("Password", { exact: true }).fill(admin.password);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByLabel("Confirm your password").fill(admin.password);
  await assertAccessible("the password again");
  await page.getByRole("button", { name: "Continue" }).click();
  await page.getByRole("img", { name: "QR code for your authenticator app" }).waitFor();
  await assertAccessible("the app's key");
  const secret = (await page.locator("code").first().textContent()) ?? "";
  await page.getByLabel("Code", { exact: true }).fill(nextCode(secret));
  await page.getByRole("button", { name: "Confirm" }).click();
  await page.getByRole("button", { name: "I've saved these codes" }).waitFor();
  assert.equal(await page.getByRole("list", { name: "Recovery codes" }).getByRole("listitem").count(), 10);
  await assertAccessible("the recovery codes");
  await page.getByRole("button", { name: "Copy all" }).click();
  await page.getByRole("button", { name: "Copied" }).waitFor();
  const copied = await page.evaluate<string>("navigator.clipboard.readText()");
  assert.equal(new Set(copied.split("\n")).size, 10);
  // Written down by hand, none of them has a character that looks like another.
  for (const code of copied.split("\n")) assert.match(code, /^R(-[2-9A-HJ-NP-Z]{4}){5}$/);
  await page.getByRole("button", { name: "I've saved these codes" }).click();
  await page.getByRole("heading", { name: "Overview" }).waitFor();
  // Codes that were lost are replaced. The password is asked for, and the second factor if it was given long ago.
  await page.goto(`${url}/dashboard/me`);
  await page.getByRole("button", { name: "New recovery codes" }).click();
  await page.getByRole("dialog").getByLabel("Confirm your password", { exact: true }).fill(admin.password);
  await assertAccessible("new recovery codes");
  await page.getByRole("button", { name: "Replace", exact: true }).click();
  const made = page.getByRole("dialog", { name: "Your recovery codes" }).locator("pre");
  const confirming = page.getByRole("dialog", { name: "Confirm that it is you" });
  await made.or(confirming).first().waitFor();
  if (await confirming.isVisible()) {
    await confirming.getByLabel("Code").fill(copied.split("\n")[0] ?? "");
    await confirming.getByRole("button", { name: "Confirm" }).click();
  }
  await made.waitFor();
  const codes = (await made.innerText()).split("\n");
  assert.equal(codes.length, 10);
  assert.ok(!copied.split("\n").some((code) => codes.includes(code)));
  await page.getByRole("button", { name: "I've saved it" }).click();
  await page.getByText("10 recovery codes are left").waitFor();
  // Without any, a lost app locks its owner out.
  const used =
    "delete from operator_recovery_code where operator_id in (select id from operator where email = $1)";
  await stage.operators.db.query(used, [admin.email]);
  await page.reload();
  await page.getByText("0 recovery codes left").waitFor();
  await assertAccessible("no recovery codes");
  await context.close();
});

test("a session that is over leads to the sign-in, and back to the same page", async () => {
  const viewer = await stage.openPage("viewer", "/runs");
  await viewer.getByRole("link", { name: "Nightly list" }).waitFor();
  await viewer.context().clearCookies();
  await viewer.getByRole("heading", { name: "Sign in" }).waitFor();
  const again = await stage.operators.operator("viewer");
  await viewer.getByLabel("Email").fill(again.email);
  await viewer.getByLabel("Password", { exact: true }).fill(again.password);
  await viewer.getByRole("button", { name: "Sign in" }).click();
  await viewer.getByRole("link", { name: "Nightly list" }).waitFor();
  await viewer.context().close();
});

test("a run is watched live, from its trigger to its review", async () => {
  const page = await stage.openPage("operator", "/runs?run_name=Live");
  // A browser whose clock is an hour ahead: what pages show goes by the service's.
  await page.context().addInitScript("{ const now = Date.now; Date.now = () => now() + 3_600_000; }");
  await page.reload();
  await page.getByRole("heading", { name: "No runs match" }).waitFor();
  const run = await stage.trigger("supplier-invoices", RECORDS, {
    run_name: "Live run",
    purchase_order: "PO-7",
    purchase_ordr: "typed wrongly",
  });
  // The list finds it by itself.
  await page.getByRole("link", { name: "Live run" }).waitFor();
  await page.getByText("just now").filter({ visible: true }).first().waitFor();
  await page.getByRole("link", { name: "Live run" }).click();
  await page.getByRole("heading", { name: "Live run", level: 1 }).waitFor();
  await page.getByText("This run awaits a review").waitFor();
  assert.equal(new URL(page.url()).pathname, `/dashboard/runs/${run}`);
  // Nothing runs meanwhile, and no timeout passes.
  await page.getByRole("button", { name: /look.*Awaiting review.*waiting/s }).waitFor();
  assert.equal(await page.getByText("Timeout", { exact: true }).count(), 0);
  await page.getByRole("link", { name: "supplier-invoices, version 1" }).waitFor();
  assert.match((await page.locator("time").first().getAttribute("title")) ?? "", / UTC/);
  const about = await page.getByRole("region", { name: "About" }).innerText();
  assert.match(about, /queued \d.*waiting for a review \d.*steps \d/s);
  const ignored = page.getByRole("list", { name: "Ignored keys" });
  assert.match(await ignored.innerText(), /purchase_ordr.*Did you mean purchase_order\?/);
  await page.getByRole("link", { name: "purchase_order PO-7" }).waitFor();
  await page.getByText("Graph", { exact: true }).click();
  await page.getByRole("button", { name: "A look at the invoices" }).click();
  const details = page.getByRole("region", { name: "Details of A look at the invoices" });
  await details.getByText("supplier: No supplier").waitFor();
  await details.getByRole("tab", { name: "Log" }).click();
  await details.getByText("This step logged nothing.").waitFor();
  await page.getByRole("button", { name: "Cancel the run" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Cancel the run" }).click();
  await page.getByText("Cancelled", { exact: true }).waitFor();
  await page.context().close();
});

test("a viewer sees that a review waits, and neither its records nor a way to decide", async () => {
  const run = await stage.trigger("supplier-invoices", RECORDS, { run_name: "Not for viewers" });
  const review = await stage.waitForReview(run);
  const page = await stage.openPage("viewer", "/reviews");
  await page.locator(`a[href$="/reviews/${review}"]`).click();
  await page.getByText("Your role can see this review but not its records").waitFor();
  assert.equal(await page.getByRole("button", { name: "Approve" }).count(), 0);
  assert.equal(await page.getByText("RE-1").count(), 0);
  await page.goto(`${url}/dashboard/runs/${run}`);
  await page.getByText("This run awaits a review").waitFor();
  assert.equal(await page.getByRole("button", { name: "Cancel the run" }).count(), 0);
  // Nothing runs meanwhile, and the list of Blueprints does not say so.
  await page.goto(`${url}/dashboard/blueprints`);
  await page.getByRole("row", { name: /supplier-invoices.*Awaiting review/s }).waitFor();
  await page.context().close();
});

test("what is forever wants the second factor, and goes on when it is given", async () => {
  const admin = await stage.withApp("operator");
  const run = await stage.trigger("plain-list", RECORDS, { run_name: "To be purged" });
  await stage.caller.waitForRun(run, 100_000);
  const context = await stage.newContext();
  const page = await context.newPage();
  await page.goto(`${url}/dashboard/runs/${run}`);
  await page.getByLabel("Email").fill(admin.email);
  await page.getByLabel("Password", { exact: true }).fill(admin.password);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByLabel("Code").fill(nextCode(admin.secret));
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("button", { name: "Purge now" }).waitFor();
  // Another tab with the same session, in which something has been prepared.
  const review = await stage.waitForReview(await stage.trigger("supplier-invoices", RECORDS));
  const other = await context.newPage();
  await other.goto(`${url}/dashboard/reviews/${review}`);
  await other.getByLabel("supplier of record 2").fill("Southgate");
  // As after a longer look at the page.
  await rewriteSigned(stage.operators.db, "operator_session", "stepped_up_at = null", []);
  await page.getByRole("button", { name: "Purge now" }).click();
  await page.getByRole("button", { name: "Purge permanently" }).click();
  const asking = page.getByRole("dialog", { name: "Confirm that it is you" });
  // One question at a time.
  await page.getByRole("dialog", { name: "Purge this run's data?" }).waitFor({ state: "hidden" });
  await asking.getByLabel("Code").fill("000000");
  await asking.getByRole("button", { name: "Confirm" }).click();
  await asking.getByRole("alert").waitFor();
  await stage.operators.db.query("update operator set totp_step = 0 where id = $1", [admin.id]);
  await asking.getByLabel("Code").fill(nextCode(admin.secret));
  await asking.getByRole("button", { name: "Confirm" }).click();
  await page.getByText("Data purged").waitFor();
  // The code has given the session another token.
  await other.getByRole("button", { name: "Approve" }).click();
  await other.getByRole("dialog").getByRole("button", { name: "Approve" }).click();
  await other.getByText("Approved. The run continues.").waitFor();
  await context.close();
});

/** From the command line: two admins must confirm it. */
async function propose(): Promise<string> {
  await stage.operators.installation.apply("account: acme\nname: Acme Inc.\ntwo_person: true");
  const { db, signing } = stage.operators;
  const outcome = await applyConfig(db, signing, [{ file: "f", text: "account: acme\nname: Acme Inc." }]);
  return (outcome.ok && outcome.proposal?.id) || assert.fail("nothing was proposed");
}

test("a change that needs two admins is shown with what differs, and one of them confirms it", async () => {
  const id = await propose();
  const page = await stage.openPage("admin", "/");
  await page.getByRole("link", { name: "1 proposal" }).click();
  await page.getByRole("link", { name: "The account acme turns `two_person` off." }).click();
  await page.waitForURL(`**/proposals/${id}`);
  await page.getByRole("region", { name: "Change the account acme" }).getByText("two_person").waitFor();
  await page.getByText("2 different admins").waitFor();
  await page.getByRole("button", { name: "Confirm the proposal" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Confirm" }).click();
  await page.getByText("You have confirmed it. Another admin must confirm it too.").waitFor();
  await page.getByText("1 admin", { exact: true }).waitFor();
  await page.getByRole("button", { name: "Discard the proposal" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Discard" }).click();
  await page.getByText("Discarded", { exact: true }).waitFor();
  await page.getByRole("link", { name: /^Proposals/ }).click();
  await page.getByText("No open proposals").waitFor();
  await page.context().close();
});

/** Every page, with something on it and with nothing. */
const PAGES = [
  "",
  "/runs",
  "/runs?status=failed",
  "/runs/RUN",
  "/reviews",
  "/reviews/REVIEW",
  "/writes",
  "/proposals?all=1",
  "/proposals/PROPOSAL",
  "/blueprints",
  "/blueprints/acme/supplier-invoices",
  "/blueprints/acme/supplier-invoices?tab=versions",
  "/blueprints/acme/supplier-invoices?tab=try",
  "/strategies",
  "/credentials",
  "/sessions",
  "/secrets",
  "/accounts",
  "/accounts/acme",
  "/keys",
  "/audit",
  "/operators",
  "/tokens",
  "/system",
  "/me",
  "/none",
];

/** One of each make: a table, a page with tabs, an editor, a form, and what stands by itself. The others are looked at by set-up and story. */
const REPRESENTATIVES = [
  "",
  "/runs",
  "/runs/RUN",
  "/reviews/REVIEW",
  "/proposals/PROPOSAL",
  "/accounts/acme",
  "/system",
  "/me",
  "/none",
];

const SIZES = [
  [1440, 900],
  [390, 844],
] as const;

for (const [width, height] of inTier(SIZES, ([each]) => each === 390)) {
  test(
    `axe finds nothing and nothing sticks out, ${width} px wide, light and dark`,
    { timeout: 400_000 },
    async () => {
      const run = await stage.trigger("supplier-invoices", RECORDS, {
        run_name: "For axe",
        note: "n",
        nte: "n",
      });
      const review = await stage.waitForReview(run);
      const proposal = await propose();
      const page = await stage.openPage("admin", "", { viewport: { width, height }, colorScheme: "light" });
      const found: string[] = [];
      const look = async (what: string): Promise<void> => {
        found.push(...(await axeLightAndDark(page)).map((each) => `${what}: ${each}`));
        if (await page.evaluate("document.documentElement.scrollWidth > innerWidth"))
          found.push(`${what}: wider`);
      };
      for (const path of inTier(PAGES, (each) => REPRESENTATIVES.includes(each))) {
        await page.goto(
          `${url}/dashboard${path.replace("RUN", run).replace("REVIEW", review).replace("PROPOSAL", proposal)}`,
        );
        await page.getByRole("heading", { level: 1 }).waitFor();
        await page.locator("[aria-busy=true]").first().waitFor({ state: "detached" });
        await look(path);
      }
      await page.goto(`${url}/dashboard/reviews/${review}`);
      await page.getByRole("button", { name: "Approve" }).click();
      await page.getByRole("dialog").waitFor();
      await look("dialog");
      await page.getByRole("dialog").getByRole("button", { name: "Approve with errors" }).click();
      await stage.caller.waitForRun(run, 100_000);
      await page.goto(`${url}/dashboard/runs/${run}`);
      await page.getByRole("region", { name: "Records" }).getByRole("cell", { name: "RE-1" }).waitFor();
      await page.getByText("Graph", { exact: true }).click();
      await page.getByRole("button", { name: "A look at the invoices" }).click();
      await look("results and graph");
      await page.context().clearCookies();
      await page.goto(`${url}/dashboard`);
      await page.getByLabel("Email").waitFor();
      await look("sign-in");
      assert.deepEqual(found, []);
      await page.context().close();
    },
  );
}

test("no browser has complained, of the policy, of a script, or of a request elsewhere", () => {
  assert.deepEqual(stage.problems, []);
});
