/**
 * Takes the pictures of `docs/dashboard.md`: each page, wide and on a phone, light and dark, at a service that is started for it.
 * `node scripts/run.mjs scripts/dashboard-screenshots.ts [pattern of names]`.
 */
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { shrinkPng } from "./small-png.ts";
import { submitHostedForm } from "../test/caller.ts";
import { keepSecret } from "../test/keep-secret.ts";
import { startTarget, type Target } from "../test/flow/target.ts";
import { startReceiver } from "../test/webhooks/stage.ts";
import { DOCUMENTS, openDashboardStage, type DashboardStage } from "../test/dashboard/dashboard-stage.ts";

const FOLDER = join(import.meta.dirname, "../docs/screenshots/dashboard");
const SCREENS = { desktop: { width: 1440, height: 900 }, phone: { width: 390, height: 844 } } as const;
/** Of a long page the beginning is enough. */
const HEIGHT_MAX = 1_600;
const WANTED = process.argv[2] ?? "";

const SUPPLIERS = ["Northwind", "Southgate Steel", "Eastfield Paper", "Westbrook Tools"];
const invoice = (n: number) => ({
  number: `RE-2026-${String(n).padStart(4, "0")}`,
  supplier: n % 9 === 4 ? "" : SUPPLIERS[n % SUPPLIERS.length],
  due: `2026-11-${String((n % 28) + 1).padStart(2, "0")}`,
  currency: "EUR",
  total: n % 11 === 7 ? -12.5 : Math.round(((n * 7919) % 100_000) + 1) / 100,
});
const invoices = (count: number, from = 1) =>
  Array.from({ length: count }, (_, index) => invoice(from + index));

const STRATEGY = (url: string, description: string): string => `strategy: strat_portal
account: acme
name: Supplier portal
description: ${description}
hosts: [${url}]
fields:
  - { key: username, label: Username, type: text, required: true }
  - { key: password, label: Password, type: password, required: true, help: The one for the portal }
login:
  type: http
  steps:
    - request: { method: GET, url: /login }
    - request:
        method: POST
        url: /login
        form: { username: "{{ $credential.username }}", password: "{{ $credential.password }}" }
      expect: { status: [204] }
`;

/** What customers' runs read at the portal. */
const PORTAL_INVOICES = (url: string): string => `blueprint: portal-invoices
account: acme
name: Portal invoices
hosts: [${url}]
credentials: { portal: { strategy: strat_portal } }
metadata: [{ name: customer, label: Customer }]
nodes:
  - { id: read, type: http, name: Invoices from the portal, credential: portal, request: { method: GET, url: /invoices }, records: items }
  - { id: checked, type: validate, from: read, rules: [{ assert: total > 0, field: total, message: The total must be above zero }] }
  - { id: due, type: filter, name: Due this month, from: checked, where: 'currency = "EUR"' }
  - { id: out, type: output, refKey: invoices, from: due }
`;

/** A strategy with credentials, one of which the target rejects, sessions, keys, people, and documents with versions. */
async function setUp(
  stage: DashboardStage,
  target: Target,
): Promise<{
  readonly test: string;
  readonly credential: string;
  readonly session: string;
  readonly failed: string;
}> {
  const { installation } = stage.operators;
  await installation.apply(STRATEGY(target.url, "Reads invoices"));
  await installation.apply(
    STRATEGY(target.url, "Reads invoices and books them"),
    (DOCUMENTS[1] ?? "").replace("timeout: 3d", "timeout: 5d"),
    "account: contoso\nname: Contoso Ltd.\nallowed_origins: [https://app.contoso.example]",
  );
  let credential = "";
  const failed: string[] = [];
  await installation.apply(PORTAL_INVOICES(target.url));
  for (const [name, password] of [
    ["Portal of Northwind", "right"],
    ["Portal of Southgate", "right"],
    ["Portal of Eastfield", "wrong"],
  ] as const) {
    const { body } = await stage.caller.post("/credential-sessions", { strategy_id: "strat_portal", name });
    await submitHostedForm(body.hosted_url, { username: "ada", password });
    credential = (await stage.caller.get(`/credential-sessions/${body.id}`)).body.credential_id;
    const customer = name.replace("Portal of ", "");
    const { body: run } = await stage.caller.post("/blueprints/portal-invoices/trigger", {
      credential_id: credential,
      run_name: `Invoices of ${customer}, October`,
      customer: `${customer} GmbH`,
    });
    await stage.caller.waitForRun(run.id, 100_000);
    if (password === "wrong") failed.push(run.id);
  }
  const { body: pending } = await stage.caller.post("/credential-sessions", {
    strategy_id: "strat_portal",
    name: "Portal of Westbrook",
  });
  await installation.createKey("acme", { name: "Backend" });
  await setUpSecrets(installation);
  for (const [name, role] of [
    ["Continuous integration", "operator"],
    ["Nightly report", "viewer"],
  ] as const)
    await installation.command("tokens", "create", "--name", name, "--role", role, "--expires", "90d");
  for (const role of ["operator", "reviewer", "viewer"] as const) await stage.operators.operator(role);
  const { stdout } = await installation.command("credentials", "test-login", credential, "--json");
  const { id: test } = JSON.parse(stdout) as { id: string };
  while (
    (await installation.database.db.query("select 1 from run where id = $1 and ended_at is null", [test]))
      .length > 0
  )
    await new Promise((resolve) => setTimeout(resolve, 100));
  return { test, credential, session: pending.id, failed: failed[0] ?? "" };
}

/** Two that strategies name, and a strategy without the one that it names. */
async function setUpSecrets(installation: DashboardStage["operators"]["installation"]): Promise<void> {
  const strategy = (id: string, secret: string): string => `strategy: strat_${id}
account: acme
name: Bank of ${id}
hosts: [https://api.${id}.example]
login: { type: oauth2, client_id: latchkey, client_secret: { secret: ${secret} }, issuer: "https://login.${id}.example" }`;
  await installation.apply(...["northwind", "eastfield"].map((id) => strategy(id, id.toUpperCase())));
  await keepSecret(installation, "NORTHWIND", "northwind", "https://login.northwind.example");
  await keepSecret(installation, "SOUTHGATE", "southgate", "https://login.southgate.example");
}

/** One that gets what happens to runs, and one that is gone. */
async function setUpWebhooks(
  { operators: { installation } }: DashboardStage,
  url: string,
): Promise<{ readonly webhook: string; readonly dead: string }> {
  const create = async (path: string, ...more: readonly string[]): Promise<string> => {
    const command = ["webhooks", "create", `${url}${path}`, "--account", "acme", "--json", ...more];
    return (JSON.parse((await installation.command(...command)).stdout) as { id: string }).id;
  };
  const webhook = await create("/hooks", "--description", "The portal's backend", "--events", "run.*");
  const dead = await create("/old");
  await installation.command("webhooks", "ping", dead);
  await installation.command("webhooks", "rotate", webhook);
  return { webhook, dead };
}

async function fill(
  stage: DashboardStage,
): Promise<{ readonly done: string; readonly review: string; readonly waiting: string }> {
  for (const month of ["July", "August", "September"])
    await stage.trigger("plain-list", invoices(40), { run_name: `Price list of ${month}` });
  const done = await stage.trigger("plain-list", invoices(250), { run_name: "Price list of October" });
  const cancelled = await stage.trigger("supplier-invoices", invoices(6), {
    run_name: "Invoices of week 45",
  });
  await stage.waitForReview(cancelled);
  await stage.caller.post(`/blueprint-runs/${cancelled}/cancel`);
  await stage.trigger("supplier-invoices", "nothing that could be parsed", {
    run_name: "Invoices of week 46",
  });
  const waiting = await stage.trigger("supplier-invoices", invoices(6, 3), {
    run_name: "Invoices of week 47",
    purchase_order: "PO-2026-117",
    purchase_ordr: "typed wrongly",
  });
  await stage.caller.waitForRun(done, 100_000);
  return { done, waiting, review: await stage.waitForReview(waiting) };
}

const target = await startTarget(({ method, path, body }) => {
  if (path === "/invoices") return { body: { items: invoices(40) } };
  return { status: method === "GET" ? 200 : body.includes("right") ? 204 : 401 };
});
await using stage = await openDashboardStage();
const { test, credential, session, failed } = await setUp(stage, target);
const receiver = await startReceiver(({ path }) =>
  path === "/old" ? { status: 410, body: "Gone" } : { status: 204 },
);
const { webhook, dead } = await setUpWebhooks(stage, receiver.url);
const { done, waiting, review } = await fill(stage);

/** Name, address, and what is done before the picture. */
const PAGES: readonly (readonly [name: string, path: string, prepare?: (page: Page) => Promise<void>])[] = [
  ["overview", ""],
  ["runs", "/runs"],
  ["run-waiting", `/runs/${waiting}`],
  ["run-failed", `/runs/${failed}`],
  ["run-results", `/runs/${done}`],
  ["run-graph", `/runs/${waiting}`, async (page) => await page.getByText("Graph", { exact: true }).click()],
  ["reviews", "/reviews"],
  ["review", `/reviews/${review}`],
  [
    "run-again",
    `/runs/${done}`,
    async (page) => {
      await page.getByRole("button", { name: "Run again" }).click();
      await page.getByText("This starts a new run with the same inputs").waitFor();
    },
  ],
  ["test-login", `/runs/${test}`],
  ["blueprints", "/blueprints"],
  ["blueprint", "/blueprints/acme/supplier-invoices"],
  ["blueprint-health", "/blueprints/acme/plain-list?tab=health"],
  ["blueprint-document", "/blueprints/acme/supplier-invoices?tab=document"],
  [
    "blueprint-versions",
    "/blueprints/acme/supplier-invoices?tab=versions",
    async (page) => await page.getByRole("button", { name: "View version 2" }).click(),
  ],
  ["blueprint-try", "/blueprints/acme/supplier-invoices?tab=try"],
  ["strategies", "/strategies"],
  ["strategy", "/strategies/acme/strat_portal"],
  ["strategy-document", "/strategies/acme/strat_portal?tab=document"],
  ["strategy-credentials", "/strategies/acme/strat_portal?tab=credentials"],
  ["credentials", "/credentials"],
  ["credential", `/credentials/${credential}`],
  ["sessions", "/sessions"],
  ["session", `/sessions/${session}`],
  ["secrets", "/secrets"],
  [
    "secret-new",
    "/secrets",
    async (page) => {
      await page.getByRole("button", { name: "New secret" }).click();
      await page.getByRole("dialog").getByLabel("Name").fill("WESTBROOK");
    },
  ],
  ["accounts", "/accounts"],
  ["account", "/accounts/acme"],
  ["keys", "/keys"],
  ["webhooks", "/webhooks"],
  [
    "webhook-new",
    "/webhooks",
    async (page) => {
      await page.getByRole("button", { name: "New endpoint" }).click();
      await page.getByRole("dialog").getByLabel("URL").fill("https://app.contoso.example/hooks");
    },
  ],
  ["webhook", `/webhooks/${webhook}`],
  [
    "webhook-delivery",
    `/webhooks/${webhook}`,
    async (page) => await page.getByRole("button", { name: /^Show/ }).first().click(),
  ],
  ["webhook-dead", `/webhooks/${dead}`],
  ["audit", "/audit"],
  ["operators", "/operators"],
  ["tokens", "/tokens"],
  ["system", "/system"],
  ["own-sign-in", "/me"],
  [
    "sign-in",
    "",
    async (page) => {
      await page.context().clearCookies();
      await page.reload();
    },
  ],
];

mkdirSync(FOLDER, { recursive: true });
for (const [screen, viewport] of Object.entries(SCREENS)) {
  for (const colorScheme of ["light", "dark"] as const) {
    const page = await stage.openPage("admin", "/me", { viewport, colorScheme });
    for (const [name, path, prepare] of PAGES) {
      const file = `${name}-${screen}-${colorScheme}`;
      if (!new RegExp(WANTED).test(file)) continue;
      await page.goto(`${stage.operators.service.url}/dashboard${path}`);
      await settle(page);
      await prepare?.(page);
      await settle(page);
      // What sticks to the window's edge would hang in the middle of a long picture.
      const height = Math.min(
        Number(await page.evaluate("document.documentElement.scrollHeight")),
        HEIGHT_MAX,
      );
      await page.setViewportSize({ width: viewport.width, height: Math.max(height, viewport.height) });
      await settle(page);
      writeFileSync(join(FOLDER, `${file}.png`), shrinkPng(await page.screenshot()));
      await page.setViewportSize(viewport);
      console.log(file);
    }
    await page.context().close();
  }
}
await target.close();
await receiver.close();
if (stage.problems.length > 0) throw new Error(stage.problems.join("\n"));

async function settle(page: Page): Promise<void> {
  await page.getByRole("heading", { level: 1 }).waitFor();
  await page.locator("[aria-busy=true]").first().waitFor({ state: "detached" });
  await page.evaluate(
    "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done, 300))))",
  );
}
