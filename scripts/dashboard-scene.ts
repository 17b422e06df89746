/**
 * What the pictures of the dashboard show: customers' runs of a month, reviews, credentials, keys, people and documents, made at a
 * service by what customers and operators do. Only the times of past runs are put into the database.
 */
import { keepSecret } from "../test/keep-secret.ts";
import { startTarget, type Target } from "../test/flow/target.ts";
import { startReceiver } from "../test/webhooks/stage.ts";
import { DOCUMENTS, type DashboardStage } from "../test/dashboard/dashboard-stage.ts";

export const EMAILS = {
  admin: "ana@contoso.example",
  operator: "omar@contoso.example",
  reviewer: "ruth@contoso.example",
  viewer: "vera@contoso.example",
} as const;

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

/** Without those that a rule finds something wrong with. */
const good = (of: ReturnType<typeof invoices>) =>
  of.filter(({ supplier, total }) => supplier !== "" && total > 0);

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

/** Returns the id of the run, once it has ended. */
async function testLogin(
  { operators: { installation } }: DashboardStage,
  credential: string,
): Promise<string> {
  const { stdout } = await installation.command("credentials", "test-login", credential, "--json");
  const { id } = JSON.parse(stdout) as { id: string };
  const isOver = "select 1 from run where id = $1 and ended_at is not null";
  while ((await installation.database.db.query(isOver, [id])).length === 0)
    await new Promise((resolve) => setTimeout(resolve, 100));
  return id;
}

/** The ids of what the pictures show. */
interface SetUp {
  readonly test: string;
  readonly credential: string;
  readonly session: string;
  readonly failed: string;
}

/** A strategy with credentials, one of which the target rejects, sessions, keys, people, and documents with versions. */
async function setUp(stage: DashboardStage, target: Target): Promise<SetUp> {
  const { installation } = stage.operators;
  await installation.apply(STRATEGY(target.url, "Reads invoices"));
  await publish(stage, [
    STRATEGY(target.url, "Reads invoices and books them"),
    (DOCUMENTS[1] ?? "")
      .replace("timeout: 3d", "timeout: 5d")
      .replace("id: rows, type: parse,", "id: rows, type: parse, name: Rows of the file,")
      .replace("id: checked\n", "id: checked\n    name: Totals and suppliers\n")
      .replace("{ name: note }", "{ name: note }, { name: customer, label: Customer }"),
    "account: contoso\nname: Contoso Ltd.\nallowed_origins: [https://app.contoso.example]",
  ]);
  let credential = "";
  const failed: string[] = [];
  const logins: string[] = [];
  await installation.apply(PORTAL_INVOICES(target.url));
  for (const [name, password] of [
    ["Portal of Northwind", "right"],
    ["Portal of Southgate", "right"],
    ["Portal of Eastfield", "wrong"],
  ] as const) {
    // The others' month is over when this one's login fails.
    if (password === "wrong") await setUpHistory(stage, logins);
    const customer = name.replace("Portal of ", "");
    const { body } = await stage.caller.post("/credential-sessions", {
      strategy_id: "strat_portal",
      name,
      metadata: { customer },
    });
    await typeLogin(stage, body.hosted_url, password);
    credential = (await stage.caller.get(`/credential-sessions/${body.id}`)).body.credential_id;
    if (password === "right") logins.push(credential);
    const { body: run } = await stage.caller.post("/blueprints/portal-invoices/trigger", {
      credential_id: credential,
      run_name: `Invoices of ${customer}, October`,
      customer,
    });
    await stage.caller.waitForRun(run.id, 100_000);
    if (password === "wrong") failed.push(run.id);
  }
  const { body: pending } = await stage.caller.post("/credential-sessions", {
    strategy_id: "strat_portal",
    name: "Portal of Westbrook",
    metadata: { customer: "Westbrook" },
  });
  await installation.createKey("acme", {
    name: "Nightly export",
    scopes: ["runs"],
    lifetimeMs: 90 * 86_400_000,
  });
  await setUpSecrets(installation);
  for (const [name, role] of [
    ["Continuous integration", "operator"],
    ["Nightly report", "viewer"],
  ] as const)
    await installation.command("tokens", "create", "--name", name, "--role", role, "--expires", "90d");
  for (const role of ["reviewer", "viewer"] as const) {
    const someone = await stage.operators.operator(role, null, EMAILS[role]);
    await stage.operators.holding(someone);
    if (role !== "viewer") await stage.operators.giveSecondFactor(someone);
  }
  const test = await testLogin(stage, credential);
  return { test, credential, session: pending.id, failed: failed[0] ?? "" };
}

/** By a person: versions say who has published them. */
async function publish({ operators }: DashboardStage, texts: readonly string[]): Promise<void> {
  const someone = await operators.operator("operator", null, EMAILS.operator);
  await operators.giveSecondFactor(someone);
  const browser = await operators.holding(someone);
  const documents = texts.map((text, n) => ({ file: `${n}.yaml`, text }));
  const { status, text } = await browser.send("POST", "/config/apply", { documents });
  if (status !== 200) throw new Error(text);
}

/** As an end user does, in a browser of their own. */
async function typeLogin(stage: DashboardStage, url: string, password: string): Promise<void> {
  const context = await stage.newContext();
  const page = await context.newPage();
  await page.goto(url);
  await page.getByLabel("Username").fill("ada");
  await page.getByLabel("Password", { exact: true }).fill(password);
  await Promise.all([
    page.waitForResponse((answer) => answer.request().method() === "POST"),
    page.locator("form button[type=submit]").last().click(),
  ]);
  await context.close();
}

/** Two that strategies name, and a strategy without the one that it names. */
async function setUpSecrets(installation: DashboardStage["operators"]["installation"]): Promise<void> {
  const strategy = (id: string, secret: string): string => `strategy: strat_${id}
account: acme
name: Bank of ${id.charAt(0).toUpperCase()}${id.slice(1)}
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
  const { db } = installation.database;
  while (
    (await db.query("select 1 from webhook_endpoint where id = $1 and disabled_at is null", [dead])).length >
    0
  )
    await new Promise((resolve) => setTimeout(resolve, 100));
  await installation.command("webhooks", "rotate", webhook);
  return { webhook, dead };
}

const CUSTOMERS = ["Hofbauer", "Miller & Sons", "Northwind", "Southgate", "Lindgren"];

/** Runs of the last month, most of which went well: their ids. */
async function setUpHistory(stage: DashboardStage, credentials: readonly string[]): Promise<void> {
  const { installation } = stage.operators;
  await installation.apply(`blueprint: price-list
account: acme
name: Price lists
metadata: [{ name: customer, label: Customer }]
nodes:
  - { id: data, type: input, refKey: data }
  - { id: rows, type: parse, name: Rows of the list, from: data, format: json }
  - id: checked
    type: validate
    name: Prices are above zero
    from: rows
    rules:
      - { assert: total > 0, field: total, message: The total must be above zero }
      - { assert: $length(supplier) > 0, field: supplier, message: No supplier }
  - { id: out, type: output, refKey: prices, from: checked }`);
  const runs: string[] = [];
  for (let n = 0; n < RUNS; n++) {
    const customer = CUSTOMERS[n % CUSTOMERS.length] ?? "";
    const credential = credentials[n % credentials.length] ?? "";
    const named = { run_name: `Invoices of ${customer}`, customer };
    if (n % 10 === 9) {
      const order = `PO-2026-${n}`;
      runs.push(
        await stage.trigger("supplier-invoices", good(invoices(20, n)), { ...named, purchase_order: order }),
      );
    } else if (n % 3 === 2) {
      const { body } = await stage.caller.post("/blueprints/portal-invoices/trigger", {
        credential_id: credential,
        ...named,
      });
      runs.push(body.id);
    } else {
      const all = invoices(20 + (n % 7) * 10, n);
      const list = n % 11 === 4 ? "number;supplier;total" : n % 7 === 0 ? all : good(all);
      runs.push(await stage.trigger("price-list", list, { run_name: `Prices of ${customer}`, customer }));
    }
  }
  for (const run of runs) await stage.caller.waitForRun(run, 100_000);
  // As if they had been triggered at these times, the last one last.
  for (const [n, run] of runs.toReversed().entries()) {
    const today = RUNS / 3;
    const hours = n < today ? (n * 24) / today : 24 + ((n - today) * 24 * 28) / (RUNS - today);
    await stage.operators.db.query(
      `with moved as (select id, created_at - $2 * interval '1 hour' as at from run where id = $1)
       update run set created_at = moved.at, claimed_at = moved.at + interval '90 ms',
         started_at = moved.at + interval '120 ms', ended_at = moved.at + interval '120 ms' + $3 * interval '1 ms'
       from moved where run.id = moved.id`,
      [run, hours + ((n * 7) % 5) / 10, 700 + ((n * n * 2_617) % 1_300)],
    );
  }
}

const RUNS = 120;

async function fill(
  stage: DashboardStage,
): Promise<{ readonly done: string; readonly review: string; readonly waiting: string }> {
  const done = await stage.trigger("price-list", invoices(250), {
    run_name: "Prices of Hofbauer, October",
    customer: "Hofbauer",
  });
  const cancelled = await stage.trigger("supplier-invoices", invoices(6), {
    run_name: "Invoices of Miller & Sons, week 45",
    customer: "Miller & Sons",
    purchase_order: "PO-2026-101",
  });
  await stage.waitForReview(cancelled);
  await stage.caller.post(`/blueprint-runs/${cancelled}/cancel`);
  await stage.trigger("supplier-invoices", "nothing that could be parsed", {
    run_name: "Invoices of Lindgren, week 46",
    customer: "Lindgren",
    purchase_order: "PO-2026-109",
  });
  const waiting = await stage.trigger("supplier-invoices", invoices(12, 3), {
    run_name: "Invoices of Hofbauer, week 47",
    customer: "Hofbauer",
    purchase_order: "PO-2026-117",
    purchase_ordr: "typed wrongly",
  });
  const review = await stage.waitForReview(waiting);
  for (const [customer, order, count] of [
    ["Southgate", "PO-2026-121", 30],
    ["Northwind", "PO-2026-124", 9],
  ] as const)
    await stage.waitForReview(
      await stage.trigger("supplier-invoices", invoices(count, count), {
        run_name: `Invoices of ${customer}, week 47`,
        customer,
        purchase_order: order,
      }),
    );
  await stage.caller.waitForRun(done, 100_000);
  return { done, waiting, review };
}

/** The ids of what the pages are about. */
export async function openScene(stage: DashboardStage) {
  const target = await startTarget(({ method, path, body }) => {
    if (path === "/invoices") return { body: { items: good(invoices(40)) } };
    return { status: method === "GET" ? 200 : body.includes("right") ? 204 : 401 };
  });
  const receiver = await startReceiver(({ path }) =>
    path === "/old" ? { status: 410, body: "Gone" } : { status: 204 },
  );
  const made = await setUp(stage, target);
  const hooks = await setUpWebhooks(stage, receiver.url);
  return {
    ...made,
    ...hooks,
    ...(await fill(stage)),
    [Symbol.asyncDispose]: async () => {
      await target.close();
      await receiver.close();
    },
  };
}
