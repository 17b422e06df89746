import type { IssueSentences } from "#domain/form-issue.ts";
import type { Language } from "#domain/language.ts";
import { html, type Html, type HtmlPart } from "#lib/html.ts";
import type { en } from "./en.ts";

/** All texts of the pages in one language. A missing or an additional key does not compile. */
export type Texts = Readonly<Record<Exclude<keyof typeof en, "issues">, string>> & {
  readonly issues: IssueSentences;
};

export type TextKey = Exclude<keyof Texts, "issues">;

/** A language and its texts: what a page is written with. */
export interface Wording {
  readonly language: Language;
  readonly texts: Texts;
}

const RIGHT_TO_LEFT: ReadonlySet<Language> = new Set(["ar"]);

export const directionOf = (language: Language): "ltr" | "rtl" =>
  RIGHT_TO_LEFT.has(language) ? "rtl" : "ltr";

const PLACE = /\{(\w+)\}/;

/** Fills in the placeholders of a text. A name may be written in another direction than the sentence, so each is isolated. */
export function say(
  { texts }: Wording,
  key: TextKey,
  places: Readonly<Record<string, string>>,
  wrap: (value: string) => Html = (value) => html`<bdi>${value}</bdi>`,
): HtmlPart {
  return texts[key].split(PLACE).map((part, index) => (index % 2 === 0 ? part : wrap(places[part] ?? "")));
}

/** The same where no element is allowed: in a title or an attribute. */
export function plainText(
  { language, texts }: Wording,
  key: TextKey,
  places: Readonly<Record<string, string | number>>,
): string {
  // U+2068 and U+2069 do for text what `<bdi>` does for elements.
  const isolate = (value: string): string =>
    directionOf(language) === "rtl" ? `\u2068${value}\u2069` : value;
  return texts[key]
    .split(PLACE)
    .map((part, index) => (index % 2 === 0 ? part : isolate(String(places[part] ?? ""))))
    .join("");
}
