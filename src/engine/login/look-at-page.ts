import { outlineOf } from "#answers/browser/outline.ts";
import type { PageLook, StepBrowser } from "#answers/browser/step-browser.ts";
import { shorten } from "#domain/config-problem.ts";
import { HIDDEN } from "#engine/redaction/hide-tokens.ts";
import type { OpenBrowser } from "#outbound/browser/open-browser.ts";

type Page = Parameters<StepBrowser["look"]>[0];
type Marked = Parameters<StepBrowser["look"]>[1];

/** How long each part may take: the page may be the reason for the failure. */
const PART_MS = 3_000;
const MARKED_MAX = 5;
const CONSOLE_CHARACTERS = 300;
const URL_CHARACTERS = 200;

/** What a page shows, for operators: secrets are removed from texts, and covered in the picture. Null: it does not answer. */
export async function lookAtPage(
  browser: OpenBrowser,
  page: Page,
  marked: Marked,
  clean: (text: string) => string,
): Promise<PageLook | null> {
  // To assistive technology they are texts like others.
  const typed = await within(async () => await page.locator(EDITABLE).allInnerTexts());
  const snapshot = await within(async () => page.locator("css=:root").ariaSnapshotJSON({ timeout: PART_MS }));
  if (snapshot === null || typed === null) return null;
  const values = new Set(typed.flatMap((text) => text.split("\n")).map(oneLine));
  const shown = (text: string): string => (values.has(oneLine(text)) ? HIDDEN : clean(text));
  const boxes = marked === null ? [] : ((await within(async () => await boxesOf(marked))) ?? []);
  const picture = await within(
    async () => await browser.takePicture(page, { isSecret: (text) => clean(text) !== text, marked: boxes }),
  );
  return {
    url: shownUrl(page.url(), clean),
    outline: outlineOf(snapshot, shown),
    console: browser.consoleErrors().map((line) => shorten(clean(line), CONSOLE_CHARACTERS)),
    refused: browser.refused().map(({ origin, count }) => ({ origin: clean(origin), count })),
    picture,
  };
}

const EDITABLE = 'css=[contenteditable]:not([contenteditable="false"])';

const oneLine = (text: string): string => text.replaceAll(/\s+/g, " ").trim();

async function boxesOf(marked: NonNullable<Marked>) {
  const elements = (await marked.all()).slice(0, MARKED_MAX);
  const boxes = await Promise.all(elements.map(async (each) => await each.boundingBox({ timeout: PART_MS })));
  return boxes.filter((box) => box !== null);
}

/** Without the query, which may have tokens. */
function shownUrl(url: string, clean: (text: string) => string): string | null {
  const { origin = "null", pathname = "" } = URL.parse(url) ?? {};
  return origin === "null" ? null : shorten(clean(origin + pathname), URL_CHARACTERS);
}

/** Null: the page is gone, or did not answer in time. What the driver says about it goes nowhere. */
async function within<T>(work: () => Promise<T>): Promise<T | null> {
  const timer = Promise.withResolvers<null>();
  const id = setTimeout(() => timer.resolve(null), PART_MS);
  try {
    return await Promise.race([work().catch(() => null), timer.promise]);
  } finally {
    clearTimeout(id);
  }
}
