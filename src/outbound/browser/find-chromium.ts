import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { BrowserError } from "./browser-error.ts";
import { findHome, loadDriver } from "./driver.ts";
import { ENVIRONMENT, isExecutable } from "./system-programs.ts";

const run = promisify(execFile);

/** Debian's: the shell takes half the time, 60 % of the memory and a third of the CPU, and asks for nothing by itself. */
const HEADLESS = "/usr/bin/chromium-headless-shell";
const INSTALLED = [HEADLESS, "/usr/bin/chromium"];
/** Where Playwright installs its own, on Linux and on macOS. */
const OF_PLAYWRIGHT = [".cache/ms-playwright", "Library/Caches/ms-playwright"];
const VERSION_MS = 10_000;

const REMEDY =
  "Install one (on Debian and Ubuntu: apt install chromium-headless-shell), or set LATCHKEY_BROWSER to the path of a Chromium.";

/**
 * The path of the Chromium to use: `named` (LATCHKEY_BROWSER), else one that is installed, else the driver's own. Throws
 * BrowserError (`browser_missing`), with the remedy, if the named one can't be started. Null: none is installed. `isShown`: one that has windows.
 */
export async function findChromium(named: string | null, isShown = false): Promise<string | null> {
  if (named !== null) {
    if (isExecutable(named)) return named;
    throw new BrowserError(
      "browser_missing",
      `LATCHKEY_BROWSER names ${named}, which is no program that this user may start. Correct it, or unset it to use an installed Chromium.`,
    );
  }
  const installed = INSTALLED.find((path) => !(isShown && path === HEADLESS) && isExecutable(path));
  if (installed !== undefined) return installed;
  // The driver is only loaded if it can know of one: a worker without a browser asks again and again.
  const home = findHome();
  if (home === null || !OF_PLAYWRIGHT.some((folder) => existsSync(join(home, folder)))) return null;
  const { chromium } = await loadDriver();
  const own = chromium.executablePath();
  return isExecutable(own) ? own : null;
}

export const NO_CHROMIUM = `There is no Chromium here. ${REMEDY}`;

export const NO_WINDOW =
  "A window needs a full Chromium. Install one (on Debian and Ubuntu: apt install chromium), or set LATCHKEY_BROWSER to the path of one.";

/** What the program calls itself, e.g. `Chromium 156.0.8078.79`. Throws BrowserError (`browser_missing`). */
export async function readVersion(path: string): Promise<string> {
  try {
    const { stdout } = await run(path, ["--version"], {
      timeout: VERSION_MS,
      env: ENVIRONMENT,
    });
    return stdout.trim().slice(0, 100);
  } catch {
    throw new BrowserError(
      "browser_missing",
      `${path} does not start (\`${path} --version\` fails). ${REMEDY}`,
    );
  }
}
