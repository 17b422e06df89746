import { execFileSync } from "node:child_process";
import { chmodSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { createServer, type IncomingMessage, type RequestListener, type ServerResponse } from "node:http";
import { createServer as createTlsServer } from "node:https";
import type { AddressInfo } from "node:net";
import { networkInterfaces, tmpdir } from "node:os";
import { dirname, join } from "node:path";
import type { TestContext } from "node:test";
import { pino } from "pino";
import { openBrowsers, type Browsers, type BrowserSettings } from "#outbound/browser/browsers.ts";
import type { BrowserRequest, OpenBrowser } from "#outbound/browser/open-browser.ts";
import { openGate, type GateOptions } from "#outbound/gate.ts";
import { SETTINGS } from "./browser-settings.ts";
import { findProgram } from "../../hosted/chromium.ts";

const certificate = (name: string): string =>
  readFileSync(join(import.meta.dirname, "../certificate", name), "utf8");
const CERTIFICATE = { key: certificate("portal.test.key.pem"), cert: certificate("portal.test.pem") };

/**
 * The Chromium of the tests, as a file that every user may start. `edit` is a line of shell that may change the arguments before
 * they reach Chromium, to see what happens without one of them, or set PREFIX to a command that starts it.
 */
export async function prepareProgram(context: TestContext, edit = ":"): Promise<string> {
  const program = await findProgram();
  const folder = mkdtempSync(join(tmpdir(), "latchkey-test-program-"));
  context.after(() => {
    rmSync(folder, { recursive: true, force: true });
    program.remove();
  });
  chmodSync(folder, 0o755);
  // One that was unpacked is its owner's alone.
  const unpacked = dirname(program.path);
  if (unpacked.startsWith(tmpdir()) && statSync(unpacked).uid === process.getuid?.())
    execFileSync("chmod", ["-R", "a+rX", unpacked]);
  const { HOME: _, ...environment } = program.environment;
  const path = join(folder, "chromium");
  const exports = Object.entries(environment).map(([name, value]) => `export ${name}='${value}'`);
  writeFileSync(path, ["#!/bin/sh", ...exports, edit, `exec $PREFIX '${program.path}' "$@"`, ""].join("\n"), {
    mode: 0o755,
  });
  return path;
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
  } = {},
): Promise<Stage> {
  const program = options.settings?.program ?? (await prepareProgram(context, options.edit));
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
