/**
 * Every kind of strategy, on the hosted form and in the embedded frame, in a real Chromium: what is typed there is what
 * a run's requests carry to a real target. A login type without an entry in the table makes this red.
 */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { Browser, FrameLocator, Page } from "playwright-core";
import { GRANTS } from "#strategies/oauth/oauth-schema.ts";
import { loginTypes } from "#strategies/registry.ts";
import { openProgram } from "../browser/program.ts";
import { openTarget, type Target } from "../documents/target.ts";
import { CA_FILE, openTlsTarget, type TlsTarget } from "../documents/tls-target.ts";
import { blockThirdPartyCookies, launchChromium } from "./chromium.ts";
import { openFlow, openVisitor, serveHostPage, type Site, startSite, toldOf } from "./embed-stage.ts";
import { blueprint, setUpEmbedded, type Embedded } from "./embedded-setup.ts";
import { answerLogins, LOGIN_CASES, type Arrived, type LoginCase } from "./login-types.ts";
import { inTier } from "../tiers.ts";

const HEADER_BYTES_MAX = 131_072;
const NODES = [
  { id: "read", type: "http", credential: "it", request: { url: "/api/read" }, records: "$" },
  { id: "out", type: "output", refKey: "out", from: "read" },
];
const cases = Object.entries(LOGIN_CASES).map(([name, each], index) => ({
  name,
  each,
  key: `case-${index}`,
}));

let target: Target;
let tls: TlsTarget;
let app: Site;
let embedded: Embedded;
let browser: Browser;
/** The worker's, for logins by browser. */
let program: Awaited<ReturnType<typeof openProgram>>;

before(async () => {
  target = await openTarget({ maxHeaderSize: HEADER_BYTES_MAX });
  tls = await openTlsTarget((_request, response) => {
    response.setHeader("content-type", "application/json").end('[{"ok":true}]');
  });
  answerLogins(target);
  app = await startSite("localhost");
  program = await openProgram();
  embedded = await setUpEmbedded({
    origins: [app.origin],
    documents: cases.flatMap(({ each, key }) => documentsOf(each, key)),
    environment: { NODE_EXTRA_CA_CERTS: CA_FILE, LATCHKEY_BROWSER: program.path },
  });
  await serveHostPage(app, embedded.service.url);
  browser = await launchChromium();
});
after(async () => {
  await browser?.close();
  await embedded?.[Symbol.asyncDispose]();
  app?.close();
  tls?.close();
  program?.remove();
  await target?.[Symbol.asyncDispose]();
});

const strategyOf = (key: string): string => `strat_${key.replace("-", "_")}`;

function documentsOf({ fields, login, isTls }: LoginCase, key: string): readonly string[] {
  const strategy = {
    strategy: strategyOf(key),
    account: "acme",
    name: "Northwind",
    hosts: [isTls === true ? tls.url : target.url],
    ...(fields.length > 0 && { fields }),
    login: login(target.url),
  };
  return [JSON.stringify(strategy), blueprint(key, { it: strategy.strategy }, { nodes: NODES })];
}

test("the table has every login type, and every grant of OAuth", () => {
  const logins = cases.map(({ each }) => each.login("http://127.0.0.1"));
  assert.deepEqual(new Set(logins.map(({ type }) => type)), new Set(loginTypes.keys()));
  const grants = logins
    .filter(({ type }) => type === "oauth2")
    .map(({ grant = "authorization_code" }) => grant);
  assert.deepEqual(new Set(grants), new Set(GRANTS));
});

/** As somebody types, pastes and chooses. */
async function fillIn(page: Page, form: Page | FrameLocator, each: LoginCase, values: Values): Promise<void> {
  for (const { key, type } of each.fields) {
    const value = values[key] ?? "";
    const control = form.locator(`[name="${key}"]`);
    if (type === "file")
      await control.setInputFiles({ name: `${key}.pem`, mimeType: "text/plain", buffer: Buffer.from(value) });
    else if (type === "headers") {
      await form.locator(`[name="${key}.1.name"]`).fill(`X-${key}`);
      await form.locator(`[name="${key}.1.value"]`).fill(value);
    } else {
      await control.focus();
      await page.keyboard.insertText(value);
    }
  }
}

type Values = Readonly<Record<string, string>>;

/** At the target's own login, wherever it is shown. */
async function signIn(page: Page, { user = "" }: Values): Promise<void> {
  await page.waitForURL(`${target.url}/authorize**`);
  await page.locator("[name=user]").fill(user);
  await page.locator("[name=user]").press("Enter");
}

async function fillHosted(key: string, each: LoginCase, values: Values): Promise<string> {
  await using visitor = await openVisitor(browser, { javaScriptEnabled: false });
  const { page, complaints } = visitor;
  const { body } = await embedded.acme.post("/credential-sessions", { strategy_id: strategyOf(key) });
  await page.goto(body.hosted_url);
  await fillIn(page, page, each, values);
  await page.locator("main button[type=submit]").click();
  if (each.signIn) await signIn(page, values);
  const done = each.signIn ? / is connected$/ : "Your login is saved";
  await page.getByRole("heading", { name: done }).waitFor();
  assert.deepEqual(complaints, []);
  return (await embedded.acme.get(`/credential-sessions/${body.id}`)).body.credential_id;
}

async function fillEmbedded(key: string, each: LoginCase, values: Values): Promise<string> {
  await using visitor = await openVisitor(browser);
  const { page, complaints } = visitor;
  await blockThirdPartyCookies(page);
  await page.goto(app.origin);
  const session = await embedded.create({ blueprint_keys: [key] });
  const frame = await openFlow(page, session);
  await toldOf(page, "opened");
  await fillIn(page, frame, each, values);
  const opened = each.signIn ? page.context().waitForEvent("page") : null;
  await frame.locator("form.connect button[type=submit]").click();
  if (opened) await signIn(await opened, values);
  const { credential_id } = await toldOf(page, "completed");
  assert.deepEqual(complaints, []);
  return credential_id;
}

/** What comes to the target while a run uses the credential. */
async function runWith(key: string, credentialId: string): Promise<Arrived> {
  const [requests, clients] = [target.all.length, tls.clients.length];
  const { status, text, body } = await embedded.acme.post(`/blueprints/${key}/trigger`, {
    credential_id: credentialId,
  });
  assert.equal(status, 202, text);
  const ended = await embedded.acme.waitForRun(body.id, 60_000);
  assert.equal(ended.body.status, "completed", JSON.stringify(ended.body.error));
  return { requests: target.all.slice(requests), clients: tls.clients.slice(clients) };
}

for (const [where, fill] of [
  ["on the hosted form, without script", fillHosted],
  ["in the frame, without third-party cookies", fillEmbedded],
] as const) {
  // In the frame, the fast tier has one that is typed and one that leads elsewhere: the fields are the same form's.
  const isRepresentative = ({ each }: (typeof cases)[number], index: number): boolean =>
    fill === fillHosted || index === 0 || each.signIn === true;
  for (const { name, each, key } of inTier(cases, isRepresentative)) {
    test(`${name}: what is typed ${where} is what the target is sent`, async () => {
      const values = each.values();
      const arrived = await runWith(key, await fill(key, each, values));
      assert.deepEqual(each.arrived(arrived, values), each.wanted(values));
    });
  }
}
