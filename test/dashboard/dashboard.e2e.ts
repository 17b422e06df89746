// The dashboard in a real Chromium, at a real service with real runs. Names and roles are how the tests find what is on a page.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, before, test } from "node:test";
import { nextCode, openDashboardStage, type DashboardStage } from "./dashboard-stage.ts";

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

test("the page and its files come with headers that leave nothing open, compressed, and for ever", async () => {
  const page = await fetch(`${url}/dashboard/runs/anything`);
  const policy = page.headers.get("content-security-policy") ?? "";
  assert.match(policy, /default-src 'none'.*script-src 'self'; .*frame-ancestors 'none'/);
  assert.doesNotMatch(policy, /unsafe|\*|https?:|data:/);
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
  await page.getByLabel("Sign-in name").fill(admin.email);
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

test("a first admin sets up the second factor, sees the recovery codes once, and is in", async () => {
  const admin = await stage.operators.operator("admin");
  const context = await stage.newContext();
  const page = await context.newPage();
  await page.goto(`${url}/dashboard`);
  await page.getByLabel("Sign-in name").fill(admin.email);
  await page.getByLabel("Password", { exact: true }).fill(admin.password);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByLabel("Your password, again").fill(admin.password);
  await page.getByRole("button", { name: "Continue" }).click();
  await page.getByRole("img", { name: "QR code for your authenticator app" }).waitFor();
  const secret = (await page.locator("code").first().textContent()) ?? "";
  await page.getByLabel("Code", { exact: true }).fill(nextCode(secret));
  await page.getByRole("button", { name: "Confirm" }).click();
  assert.equal(await page.getByRole("list", { name: "Recovery codes" }).getByRole("listitem").count(), 10);
  await page.getByRole("button", { name: "I have kept them" }).click();
  await page.getByRole("heading", { name: "Overview" }).waitFor();
  await context.close();
});

test("a session that is over leads to the sign-in, and back to the same page", async () => {
  const viewer = await stage.openPage("viewer", "/runs");
  await viewer.getByRole("link", { name: "Nightly list" }).waitFor();
  await viewer.context().clearCookies();
  await viewer.getByRole("heading", { name: "Sign in" }).waitFor();
  const again = await stage.operators.operator("viewer");
  await viewer.getByLabel("Sign-in name").fill(again.email);
  await viewer.getByLabel("Password", { exact: true }).fill(again.password);
  await viewer.getByRole("button", { name: "Sign in" }).click();
  await viewer.getByRole("link", { name: "Nightly list" }).waitFor();
  await viewer.context().close();
});

test("no browser has complained, of the policy, of a script, or of a request elsewhere", () => {
  assert.deepEqual(stage.problems, []);
});
