import { readFile } from "node:fs/promises";
import { widgetIntegrity } from "#hosted/widget.ts";

const INTEGRITY = /integrity="sha384-[^"]*"/g;

/** The page about embedding, with the hash of the widget as it is. */
export async function embeddedPage(root: URL): Promise<string> {
  const page = await readFile(new URL("docs/embedded.md", root), "utf8");
  if (!INTEGRITY.test(page)) throw new Error("docs/embedded.md names the widget's integrity nowhere");
  return page.replace(INTEGRITY, `integrity="${widgetIntegrity()}"`);
}

/** The widget's types, for the React wrapper, which is published by itself. */
export const widgetTypes = async (root: URL): Promise<string> =>
  await readFile(new URL("src/hosted/browser/widget-types.ts", root), "utf8");
