import { readFileSync } from "node:fs";
import type { AxeResults } from "axe-core";
import type { Frame, Page } from "playwright-core";

type Violations = AxeResults["violations"];

const AXE = readFileSync(new URL(import.meta.resolve("axe-core/axe.min.js")), "utf8");
const RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"];

/** What axe finds wrong with a page or a frame, without the frames inside: the rule, and where. */
export async function axe(page: Page | Frame, rules: readonly string[] = RULES): Promise<readonly string[]> {
  const options = { runOnly: rules, resultTypes: ["violations"], iframes: false, preload: false };
  // `preload` would read style sheets anew, which the page's policy refuses.
  const run = `axe.run(document, ${JSON.stringify(options)}).then(({ violations }) => violations)`;
  // Evaluated by the browser's debugger: the page's own policy lets no script in. Sent once a document: it is 650 kB.
  const found = await page.evaluate<Violations | null>(`globalThis.axe ? ${run} : null`);
  const violations = found ?? (await page.evaluate<Violations>(`${AXE};${run}`));
  return violations.flatMap(({ id, nodes }) =>
    nodes.map(
      ({ target, failureSummary = "" }) =>
        `${id} at ${target.join(" ")}: ${failureSummary.replace(/\s+/g, " ").slice(0, 200)}`,
    ),
  );
}

/** In both color schemes, of which only the rule of contrast knows. `inside` is the page, or a frame of it. */
export async function axeLightAndDark(page: Page, inside: Page | Frame = page): Promise<readonly string[]> {
  await showIn(page, "light");
  const light = await axe(inside);
  await showIn(page, "dark");
  const dark = await axe(inside, ["color-contrast"]);
  await page.emulateMedia({ colorScheme: null });
  return [...light, ...dark.map((each) => `dark: ${each}`)];
}

/** What of a page or a frame is cut off at its sides, or makes it scroll sideways. */
export async function beyondSides(inside: Page | Frame): Promise<readonly string[]> {
  return (await inside.evaluate(`[
    ...(document.documentElement.scrollWidth > innerWidth ? ["the page scrolls sideways"] : []),
    ...[...document.querySelectorAll("body *")]
      .filter((each) => each.checkVisibility() && each.closest(".unseen, svg") === null)
      .filter((each) => {
        const { left, right, width } = each.getBoundingClientRect();
        return width > 0 && (left < -1 || right > innerWidth + 1);
      })
      .map((each) => each.outerHTML.slice(0, 100)),
  ]`)) as string[];
}

async function showIn(page: Page, colorScheme: "light" | "dark"): Promise<void> {
  await page.emulateMedia({ colorScheme });
  // The dashboard's components follow a moment later.
  const other = colorScheme === "light" ? "dark" : "light";
  await page.locator(`html:not([data-mantine-color-scheme=${other}])`).waitFor({ state: "attached" });
}
