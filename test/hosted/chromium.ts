import { execFile } from "node:child_process";
import {
  accessSync,
  constants,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { chromium, type Browser, type BrowserContext, type LaunchOptions, type Page } from "playwright-core";

import { atProcessEnd, isProcessShared } from "../shared-process.ts";

const run = promisify(execFile);

const INSTALLED = ["/usr/bin/chromium-headless-shell", "/usr/bin/chromium", "/usr/bin/google-chrome"];
const SYSTEM_FONTS = "/etc/fonts";
const UNPACK = fileURLToPath(new URL("./unpack-chromium.ts", import.meta.url));

/** Nothing but what the tests ask for goes over the network. */
const FLAGS = [
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];

/** A Chromium on disk. */
export interface Program {
  readonly path: string;
  readonly environment: Readonly<Record<string, string>>;
  remove(): void;
}

/**
 * A real Chromium: the one that LATCHKEY_CHROMIUM names, else the system's, else the one of the npm package
 * `@sparticuz/chromium` (x64 only), which needs nothing from the system. `packaged` takes the last one in any case.
 */
export async function launchChromium(options: { readonly packaged?: boolean } = {}): Promise<Browser> {
  if (options.packaged === true || !isProcessShared()) return await launchOwn(options);
  if (shared === null) {
    shared = launchOwn(options);
    atProcessEnd(async () => await (await shared)?.close());
  }
  return handleOf(await shared);
}

/** Of all files of this process, each of which opens contexts of its own. */
let shared: Promise<Browser> | null = null;

/** A browser that closes what was opened through it, and stays. */
function handleOf(browser: Browser): Browser {
  const contexts = new Set<BrowserContext>();
  const newContext: Browser["newContext"] = async (options) => {
    const context = await browser.newContext(options);
    contexts.add(context);
    context.once("close", () => contexts.delete(context));
    return context;
  };
  const close = async (): Promise<unknown> =>
    await Promise.all([...contexts].map(async (context) => await context.close()));
  return new Proxy(browser, {
    get: (target, name) => {
      if (name === "newContext") return newContext;
      if (name === "close") return close;
      const value: unknown = Reflect.get(target, name);
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
}

async function launchOwn(options: { readonly packaged?: boolean }): Promise<Browser> {
  const program = options.packaged === true ? await unpack() : await findProgram();
  try {
    const browser = await launch(program);
    browser.once("disconnected", () => program.remove());
    return browser;
  } catch (error) {
    program.remove();
    throw error;
  }
}

/** For more than one start; the caller removes it. */
export const findProgram = async (): Promise<Program> => findGiven() ?? findInstalled() ?? (await unpack());

/** The one that the runner has found or unpacked for all files. */
function findGiven(): Program | undefined {
  const given = process.env["LATCHKEY_TEST_BROWSER"];
  if (given === undefined || given === "") return undefined;
  const { path, environment } = JSON.parse(given) as Program;
  return { path, environment, remove: () => undefined };
}

export const launch = async (program: Program): Promise<Browser> => await chromium.launch(optionsOf(program));

/** A browser that keeps in a folder what it keeps, as an end user's does: closed and opened again it is the same one. */
export const openProfile = async (program: Program, folder: string): Promise<BrowserContext> =>
  await chromium.launchPersistentContext(folder, optionsOf(program));

const optionsOf = ({ path, environment }: Program): LaunchOptions => ({
  executablePath: path,
  args: FLAGS,
  env: { ...ownEnvironment(), ...environment },
  // As root Chromium refuses to start with its sandbox.
  chromiumSandbox: process.getuid?.() !== 0,
});

/**
 * From its next load on, frames of other sites in this page neither send cookies nor have any. By the protocol: a headless
 * Chromium has no settings, and ignores `--test-third-party-cookie-phaseout` without a word. A full one takes cookies from scripts
 * alone by it; but in a context of a test it blocks all of them by itself.
 */
export async function blockThirdPartyCookies(page: Page): Promise<void> {
  const session = await page.context().newCDPSession(page);
  // Without `enable` it is answered, and nothing is blocked.
  await session.send("Network.enable");
  await session.send("Network.setCookieControls", { enableThirdPartyCookieRestriction: true });
}

/**
 * Debian's Chromium blocks them by itself, and every full one does in its private windows, which the contexts of tests are. A
 * headless shell has no settings, and blocks none.
 */
export const allowThirdPartyCookies = (folder: string): void =>
  setUpProfile(folder, (settings) => ({
    ...settings,
    profile: { ...settings["profile"], cookie_controls_mode: 0 },
  }));

/** A full Chromium keeps user names and addresses that were sent, to fill them in again, whatever page they were sent from. */
export const fillInNothing = (folder: string): void =>
  setUpProfile(folder, (settings) => ({
    ...settings,
    credentials_enable_service: false,
    autofill: { ...settings["autofill"], enabled: false, profile_enabled: false },
  }));

type Settings = Readonly<Record<string, any>>;

/** Of a profile that is not open. */
function setUpProfile(folder: string, change: (settings: Settings) => Settings): void {
  const file = join(folder, "Default", "Preferences");
  mkdirSync(join(folder, "Default"), { recursive: true });
  const before: Settings = existsSync(file) ? JSON.parse(readFileSync(file, "utf8")) : {};
  writeFileSync(file, JSON.stringify(change(before)));
}

const ownEnvironment = (): Record<string, string> =>
  Object.fromEntries(
    Object.entries(process.env).flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])),
  );

function findInstalled(): Program | undefined {
  const named = process.env["LATCHKEY_CHROMIUM"];
  const path = named === undefined || named === "" ? INSTALLED.find(isExecutable) : named;
  return path === undefined ? undefined : { path, environment: {}, remove: () => undefined };
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

/** Some 1.5 s and 200 MB, in a folder of its own that goes with the browser. */
async function unpack(): Promise<Program> {
  const folder = mkdtempSync(join(tmpdir(), "latchkey-chromium-"));
  const remove = (): void => rmSync(folder, { recursive: true, force: true });
  process.once("exit", remove);
  try {
    const { stdout } = await run(process.execPath, ["--disable-warning=ExperimentalWarning", UNPACK], {
      env: { ...ownEnvironment(), TMPDIR: folder },
    });
    const path = stdout.trim();
    // Without a fontconfig every page crashes. The package brings one, whose fonts are where nothing was unpacked: text then
    // has no size, and nothing can be typed.
    const fonts = existsSync(join(SYSTEM_FONTS, "fonts.conf")) ? SYSTEM_FONTS : join(folder, "fonts");
    const environment = { FONTCONFIG_PATH: fonts, HOME: folder };
    const libraries = { LD_LIBRARY_PATH: join(folder, "al2023", "lib") };
    return {
      path,
      remove,
      environment: (await starts(path)) ? environment : { ...environment, ...libraries },
    };
  } catch (error) {
    remove();
    throw new Error(
      "No Chromium: install one (Debian: chromium-headless-shell) or name one in LATCHKEY_CHROMIUM.",
      {
        cause: error,
      },
    );
  }
}

/** Whether the system has every library that the program wants: without one the loader refuses it. */
async function starts(path: string): Promise<boolean> {
  return await run(path, ["--version"]).then(
    () => true,
    () => false,
  );
}
