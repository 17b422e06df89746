import type { Locator, Page } from "playwright-core";
import { isJsonObject, type Json, type JsonObject } from "#domain/json.ts";
import type { LocatorConfig } from "./locator.ts";

/** From here on, clicks the element whenever it is in the way of a step. */
export async function clickAway(page: Page, element: Locator, timeoutMs: number): Promise<void> {
  await page.addLocatorHandler(
    element.first(),
    async (found) => await found.click({ timeout: timeoutMs }).catch(() => {}),
    { noWaitAfter: true },
  );
}

/**
 * What the steps of a login click away. Only those of its own list: one inside of another step has that step's condition. A template has
 * its values only in the login.
 */
export const dismissedIn = ({ type, steps }: JsonObject): readonly LocatorConfig[] =>
  type === "browser" && Array.isArray(steps)
    ? (steps as readonly Json[])
        .map((step) => (isJsonObject(step) ? step["dismiss"] : undefined))
        .filter(isJsonObject)
        .filter((locator) => !JSON.stringify(locator).includes("{{"))
        .map((locator) => locator as LocatorConfig)
    : [];
