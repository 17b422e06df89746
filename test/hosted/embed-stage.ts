/** A customer's page that loads the widget, and one that should not; everything that is said between frame and page is kept. */
import { createHash } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import type { Browser, BrowserContextOptions, Frame, FrameLocator, Page } from "playwright-core";
import { listen } from "./hosted-setup.ts";
import type { EmbeddedBody } from "./embedded-setup.ts";

const WAIT_MS = 30_000;
const POLL_MS = 40;

export interface Site {
  readonly origin: string;
  /** Pages that a test puts there, by their path. */
  readonly pages: Map<string, { readonly html: string; readonly headers?: Record<string, string> }>;
  close(): void;
}

/** `localhost`, `127.0.0.1` and `evil.localhost` are different sites to a browser. */
export async function startSite(host: string): Promise<Site> {
  const pages: Site["pages"] = new Map();
  const server = await listen((request, response) => {
    const page = pages.get((request.url ?? "").split("?", 1)[0] ?? "");
    response.writeHead(page ? 200 : 204, { "content-type": "text/html; charset=utf-8", ...page?.headers });
    response.end(page?.html);
  });
  return { origin: server.origin.replace("127.0.0.1", host), pages, close: () => server.close() };
}

/** What `docs/embedded.md` tells customers to write, with the policy that it tells them to send. */
export function hostPage(
  serviceUrl: string,
  integrity: string,
): { html: string; headers: Record<string, string> } {
  const script = `
    const said = [];
    const handles = [];
    addEventListener("message", (event) => said.push({ from: event.origin, data: event.data }));
    function start(options, isInline) {
      const events = [];
      const calls = [];
      const call = (name) => (payload) => calls.push([name, payload]);
      const handle = Latchkey.open({
        ...options,
        container: isInline ? document.querySelector("#place") : undefined,
        onEvent: (event) => events.push(event),
        onReady: call("ready"), onCompleted: call("completed"), onExit: call("exited"), onError: call("error"),
      });
      handles.push({ handle, events, calls });
    }`;
  const sha256 = createHash("sha256").update(script).digest("base64");
  return {
    html: `<!doctype html><html lang="en"><title>Host</title><main><h1>Host</h1><button id="go">Go</button>
      <div id="place"></div></main>
      <script src="${serviceUrl}/embed/v1/latchkey.js" integrity="${integrity}" crossorigin="anonymous"></script>
      <script>${script}</script>`,
    headers: {
      "content-security-policy": `default-src 'none'; script-src ${serviceUrl} 'sha256-${sha256}'; frame-src ${serviceUrl}; base-uri 'none'`,
    },
  };
}

/** The widget's script as the service gives it, and the hash that a page pins it by. */
export async function readWidget(
  serviceUrl: string,
): Promise<{ readonly script: string; readonly integrity: string }> {
  const script = await (await fetch(`${serviceUrl}/embed/v1/latchkey.js`)).text();
  return { script, integrity: `sha384-${createHash("sha384").update(script).digest("base64")}` };
}

/** Puts the page that loads the widget at `/` of a site. */
export async function serveHostPage(site: Site, serviceUrl: string): Promise<void> {
  const { integrity } = await readWidget(serviceUrl);
  site.pages.set("/", hostPage(serviceUrl, integrity));
}

export interface Visitor extends AsyncDisposable {
  readonly page: Page;
  /** What the console said, and what did not load. */
  readonly complaints: string[];
  /** Every address that anything of it asked for. */
  readonly requested: string[];
}

export async function openVisitor(browser: Browser, options: BrowserContextOptions = {}): Promise<Visitor> {
  const context = await browser.newContext(options);
  context.setDefaultTimeout(WAIT_MS);
  const page = await context.newPage();
  const [complaints, requested]: [string[], string[]] = [[], []];
  const ofConsole = (type: string): boolean => ["error", "warning"].includes(type);
  page.on("console", (message) => {
    if (ofConsole(message.type())) complaints.push(message.text());
  });
  page.on("pageerror", (error) => complaints.push(error.message));
  context.on("request", (request) => requested.push(request.url()));
  return { page, complaints, requested, [Symbol.asyncDispose]: async () => await context.close() };
}

/** Opens the flow in the page, inline or as a dialog; gives the frame. */
export async function openFlow(
  page: Page,
  session: Pick<EmbeddedBody, "embed_url" | "client_token">,
  {
    isInline = true,
    ...more
  }: { readonly isInline?: boolean; readonly locale?: string; readonly theme?: string } = {},
): Promise<FrameLocator> {
  const options = { clientToken: session.client_token, embedUrl: session.embed_url, ...more };
  await page.evaluate(`start(${JSON.stringify(options)}, ${isInline})`);
  return page.frameLocator("iframe").last();
}

export interface Told {
  readonly events: readonly { readonly type: string; readonly payload: any }[];
  readonly calls: readonly (readonly [name: string, payload: any])[];
  readonly said: readonly { readonly from: string; readonly data: any }[];
}

/** What the page was told by the frame that was opened last. */
export const told = async (page: Page): Promise<Told> =>
  (await page.evaluate("({ events: handles.at(-1).events, calls: handles.at(-1).calls, said })")) as Told;

/** Waits until the page was told it; gives its payload. */
export async function toldOf(page: Page, type: string): Promise<any> {
  await until(page, `handles.at(-1).events.some(({ type }) => type === ${JSON.stringify(type)})`);
  return (await told(page)).events.findLast((event) => event.type === type)?.payload;
}

/** Waits until an expression is true in a page whose policy lets nobody evaluate a text there, but who debugs it. */
export async function until(page: Page | Frame, expression: string): Promise<void> {
  const deadline = performance.now() + WAIT_MS;
  while ((await page.evaluate(expression)) !== true) {
    if (performance.now() > deadline) throw new Error(`never came true: ${expression}`);
    await sleep(POLL_MS);
  }
}

/** The kinds of events, without those of size. */
export const kinds = (events: Told["events"]): readonly string[] =>
  events.map(({ type }) => type).filter((type) => type !== "resize");
