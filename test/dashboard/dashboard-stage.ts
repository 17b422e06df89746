/** A service with real data and a real Chromium: for the tests of the dashboard, and for its pictures. */
import { execFileSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import type { Browser, BrowserContext, BrowserContextOptions, Page } from "playwright-core";
import { eventually, PATIENCE_MS } from "../eventually.ts";
import { openCaller, type Caller } from "../caller.ts";
import { launchChromium } from "../hosted/chromium.ts";
import { openBrowser, codeOf } from "../operator/browser.ts";
import { openOperatorStage, type OperatorStage, type Someone } from "../operator/stage.ts";
import type { OperatorRole } from "#domain/operator.ts";

const SETUP = fileURLToPath(new URL("../../scripts/setup.mjs", import.meta.url));

const RULES = `
  - id: checked
    type: validate
    from: rows
    rules:
      - { assert: total > 0, field: total, message: The total must be above zero }
      - { assert: $length(supplier) > 0, field: supplier, message: No supplier }`;

export const DOCUMENTS = [
  "account: acme\nname: Acme Inc.",
  `blueprint: supplier-invoices
account: acme
name: Supplier invoices
metadata: [{ name: purchase_order }, { name: note }]
nodes:
  - { id: data, type: input, refKey: data }
  - { id: rows, type: parse, from: data, format: json }${RULES}
  - { id: look, type: review, name: A look at the invoices, from: checked, when: $counts.invalid > 0, title: Please look at these invoices, instructions: "Correct what you can, and leave out what is not ours.", editable: true, timeout: 3d }
  - { id: out, type: output, refKey: invoices, from: look }`,
  `blueprint: plain-list
account: acme
nodes:
  - { id: data, type: input, refKey: data }
  - { id: rows, type: parse, from: data, format: json }${RULES}
  - { id: out, type: output, refKey: rows, from: checked }`,
];

export interface DashboardStage extends AsyncDisposable {
  readonly operators: OperatorStage;
  readonly caller: Caller;
  readonly chromium: Browser;
  /** Triggers a Blueprint with records; gives the run's id. */
  trigger(
    blueprint: string,
    records: readonly unknown[] | string,
    more?: Readonly<Record<string, unknown>>,
  ): Promise<string>;
  /** Resolves when a review of the run is open; gives its id. */
  waitForReview(runId: string): Promise<string>;
  /** An operator with an authenticator app. */
  withApp(role: OperatorRole): Promise<Someone & { readonly secret: string }>;
  /** A page of somebody who has signed in already. What goes wrong on it goes to `problems`. */
  openPage(role: OperatorRole, path: string, options?: BrowserContextOptions): Promise<Page>;
  newContext(options?: BrowserContextOptions): Promise<BrowserContext>;
  /** What browsers have complained about: scripts that failed, what the Content-Security-Policy refused, requests elsewhere. */
  readonly problems: readonly string[];
}

/** `emails`: those of the people who sign in with these roles. */
export async function openDashboardStage(
  environment: Readonly<Record<string, string>> = {},
  emails: Readonly<Partial<Record<OperatorRole, string>>> = {},
): Promise<DashboardStage> {
  // Nothing to do unless the sources have changed.
  execFileSync(process.execPath, [SETUP, "--dashboard"], { stdio: ["ignore", "inherit", "inherit"] });
  const operators = await openOperatorStage(environment);
  await operators.installation.apply(...DOCUMENTS);
  const caller = openCaller(
    operators.service.url,
    await operators.installation.createKey("acme", { name: "The portal's backend" }),
  );
  const chromium = await launchChromium();
  const problems: string[] = [];
  const known = new Map<OperatorRole, string>();

  const newContext = async (options: BrowserContextOptions = {}): Promise<BrowserContext> => {
    const context = await chromium.newContext({ reducedMotion: "reduce", ...options });
    context.on("page", (page) => watch(page, operators.service.url, problems));
    return context;
  };
  const cookieOf = async (role: OperatorRole): Promise<string> => {
    const before = known.get(role);
    if (before !== undefined) return before;
    const someone = await operators.operator(role, null, emails[role]);
    await operators.giveSecondFactor(someone);
    const { cookie } = await operators.holding(someone);
    known.set(role, cookie);
    return cookie;
  };
  return {
    operators,
    caller,
    chromium,
    problems,
    newContext,
    trigger: async (blueprint, records, more = {}) => {
      const { status, text, body } = await caller.post(`/blueprints/${blueprint}/trigger`, {
        data: typeof records === "string" ? records : JSON.stringify(records),
        ...more,
      });
      if (status !== 202) throw new Error(text);
      return body.id;
    },
    waitForReview: async (runId) =>
      await eventually(
        "a review was opened",
        async () => {
          const [row] = await operators.db.query<{ id: string }>(
            "select id from review where run_id = $1 and status = 'open'",
            [runId],
          );
          return row?.id;
        },
        PATIENCE_MS,
      ),
    withApp: async (role) => {
      const someone = await operators.operator(role);
      const browser = openBrowser(operators.service.url);
      await browser.signIn(someone.email, someone.password);
      const { secret } = await browser.enrol(someone.password);
      return { ...someone, secret };
    },
    openPage: async (role, path, options) => {
      const context = await newContext(options);
      const [name = "", value = ""] = (await cookieOf(role)).split("=");
      await context.addCookies([
        { name, value, url: operators.service.url, httpOnly: true, sameSite: "Strict" },
      ]);
      const page = await context.newPage();
      await page.goto(`${operators.service.url}/dashboard${path}`);
      return page;
    },
    [Symbol.asyncDispose]: async () => {
      await chromium.close();
      await operators[Symbol.asyncDispose]();
    },
  };
}

/** Opens the menu of a row or of a page, and takes an action of it. */
export async function choose(page: Page, of: string, label: string): Promise<void> {
  await page.getByRole("button", { name: `Actions for ${of}` }).click();
  await page.getByRole("menuitem", { name: label }).click();
}

/** What the app shows, for a sign-in after the one that made it: each code counts once. */
export const nextCode = (secret: string): string => codeOf(secret, 1);

/** What a browser says, and what it can't load, while a test has taken its network away. */
const OFFLINE = /net::ERR_INTERNET_DISCONNECTED|Failed to fetch dynamically imported module/;

function watch(page: Page, origin: string, problems: string[]): void {
  page.on("pageerror", (error) => problems.push(`${page.url()}: ${error.message}`));
  page.on("console", (message) => {
    // A refusal that the page has shown is no fault of it.
    const isAnswer = message.text().startsWith("Failed to load resource: the server responded");
    const isOffline = OFFLINE.test(message.text());
    if (message.type() === "error" && !isAnswer && !isOffline)
      problems.push(`${page.url()}: ${message.text()}`);
  });
  page.on("request", (request) => {
    if (!request.url().startsWith(`${origin}/`)) problems.push(`${page.url()}: asks ${request.url()}`);
  });
}
