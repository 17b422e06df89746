import type { Page } from "playwright-core";

/** In a picture, the targets that tests serve on loopback have names, as targets have. */
export async function nameHosts(page: Page, name: string): Promise<void> {
  for (const frame of page.frames())
    await frame.evaluate(`{
      const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
      while (texts.nextNode())
        texts.currentNode.data = texts.currentNode.data.replace(/127\\.0\\.0\\.1:\\d+/g, ${JSON.stringify(name)});
    }`);
}
