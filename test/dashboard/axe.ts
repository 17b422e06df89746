import { readFileSync } from "node:fs";
import type { AxeResults } from "axe-core";
import type { Page } from "playwright-core";

const AXE = readFileSync(new URL(import.meta.resolve("axe-core/axe.min.js")), "utf8");
const RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"];

/** What axe finds wrong with a page: the rule, and where. */
export async function axe(page: Page, rules: readonly string[] = RULES): Promise<readonly string[]> {
  // Evaluated by the browser's debugger: the page's own policy lets no script in.
  const { violations } = (await page.evaluate(
    `${AXE};axe.run(document, { runOnly: ${JSON.stringify(rules)}, resultTypes: ["violations"] })`,
  )) as AxeResults;
  return violations.flatMap(({ id, nodes }) =>
    nodes.map(
      ({ target, failureSummary = "" }) =>
        `${id} at ${target.join(" ")}: ${failureSummary.replace(/\s+/g, " ").slice(0, 200)}`,
    ),
  );
}
