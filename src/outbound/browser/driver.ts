import { homedir, tmpdir } from "node:os";
import type * as Playwright from "playwright-core";
import { EDITABLE_ENGINE, findEditable } from "./editable-engine.ts";

/** The driver as its package exports it. */
export type Driver = typeof Playwright;

/** With one of these set, the driver prints what it sends (secrets included), records it, or connects to another browser. */
const DRIVER_VARIABLE = /^(DEBUG(_FILE)?|PW[A-Z]*|(PW[A-Z]*|PLAYWRIGHT|SELENIUM)_.*)$/;

let loading: Promise<Driver> | null = null;

/**
 * Loads the driver the first time a browser is needed: it takes 0.1 s and 20 MB. Its variables are removed from the environment of
 * this process first, and stay removed, because the driver also reads some of them later.
 */
export async function loadDriver(environment: NodeJS.ProcessEnv = process.env): Promise<Driver> {
  for (const name of Object.keys(environment))
    if (DRIVER_VARIABLE.test(name)) Reflect.deleteProperty(environment, name);
  // Without a home, as a user without a name may be, it does not load.
  if (findHome() === null) environment["HOME"] = tmpdir();
  loading ??= load();
  return await loading;
}

/** Null: this process's user has none. */
export function findHome(): string | null {
  try {
    return homedir();
  } catch {
    return null;
  }
}

async function load(): Promise<Driver> {
  const driver = await import("playwright-core");
  // In the isolated world, where a page's script neither sees nor changes anything.
  await driver.selectors.register(EDITABLE_ENGINE, findEditable, { contentScript: true });
  return driver;
}
