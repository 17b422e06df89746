import { chmodSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createServer, type IncomingMessage, type RequestListener, type ServerResponse } from "node:http";
import { createServer as createTlsServer } from "node:https";
import type { AddressInfo } from "node:net";
import { networkInterfaces, tmpdir } from "node:os";
import { join } from "node:path";
import type { TestContext } from "node:test";
import { pino } from "pino";
import { openBrowsers, type Browsers, type BrowserSettings } from "#outbound/browser/browsers.ts";
import type { BrowserRequest, OpenBrowser } from "#outbound/browser/open-browser.ts";
import { openGate, type GateOptions } from "#outbound/gate.ts";
import { SETTINGS } from "./browser-settings.ts";
import { openProgram } from "../../browser/program.ts";
import type { Program } from "../../hosted/chromium.ts";

const certificate = (name: string): string =>
  readFileSync(join(import.meta.dirname, "../certificate", name), "utf8");
const CERTIFICATE = { key: certificate("portal.test.key.pem"), cert: certificate("portal.test.pem") };

/** The Chromium of the tests, until the test ends (`openProgram`). */
export async function prepareProgram(
  context: TestContext,
  edit?: string,
  given?: Program | null,
): Promise<string> {
  const program = await openProgram(edit, given);
  context.after(() => program.remove());
  return program.path;
}

/** A line for `prepareProgram` that removes every argument which begins with this. */
export const without = (start: string): string =>
  `for each; do shift; case $each in ${start}*) ;; *) set -- "$@" "$each" ;; esac; done`;

export interface Stage {
  readonly browsers: Browsers;
  /** Where the browsers' folders are. */
  readonly folder: string;
  /** Opens a browser that ends with the test. */
  open(request: Partial<BrowserRequest> & Pick<BrowserRequest, "hosts">): Promise<OpenBrowser>;
}

/** Browsers on loopback: `allow` of the gate is everything there, unless it is given. */
export async function openStage(
  context: TestContext,
  options: {
    readonly gate?: GateOptions;
    readonly settings?: Partial<BrowserSettings>;
    readonly edit?: string;
    /** Another Chromium than that of the tests. */
    readonly chromium?: Program | null;
  } = {},
): Promise<Stage> {
  const program =
    options.settings?.program ?? (await prepareProgram(context, options.edit, options.chromium));
  const folder = mkdtempSync(join(tmpdir(), "latchkey-test-browsers-"));
  chmodSync(folder, 0o755);
  const gate = openGate(options.gate ?? { allow: ["127.0.0.0/8", "::1/128"] });
  const browsers = openBrowsers({
    gate,
    log: pino({ level: "silent" }),
    folder,
    settings: { ...SETTINGS, ...options.settings, program },
  });
  context.after(async () => {
    await browsers.close();
    await gate.close();
    rmSync(folder, { recursive: true, force: true });
  });
  return {
    browsers,
    folder,
    open: async (request) =>
      await browsers.open({
        resources: [],
        timeoutMs: 60_000,
        signal: new AbortController().signal,
        ...request,
      }),
  };
}

export interface Site {
  readonly port: number;
  /** `http://127.0.0.1:PORT`, or `https:` */
  readonly origin: string;
  /** Paths that were asked for, with the `Host` header in front. */
  readonly asked: string[];
}

type Answer = (request: IncomingMessage, response: ServerResponse) => void;

/** A web site on loopback: HTML by path, or whatever the function answers. */
export async function startSite(
  context: TestContext,
  pages: Readonly<Record<string, string>> | Answer,
  scheme: "http" | "https" = "http",
): Promise<Site> {
  const asked: string[] = [];
  const listener: RequestListener = (request, response) => {
    asked.push(`${request.headers.host ?? ""}${request.url ?? ""}`);
    if (typeof pages === "function") return pages(request, response);
    const { pathname } = new URL(request.url ?? "/", "http://site");
    const page = pages[pathname];
    response.writeHead(page === undefined ? 404 : 200, { "content-type": "text/html; charset=utf-8" });
    response.end(page ?? "");
  };
  const server = scheme === "http" ? createServer(listener) : createTlsServer(CERTIFICATE, listener);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  context.after(async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });
  const { port } = server.address() as AddressInfo;
  return { port, origin: `${scheme}://127.0.0.1:${port}`, asked };
}

/** An address of this machine that is not loopback; null where it has none. */
export function ownAddress(): string | null {
  const all = Object.values(networkInterfaces()).flatMap((each) => each ?? []);
  return all.find(({ internal, family }) => !internal && family === "IPv4")?.address ?? null;
}
