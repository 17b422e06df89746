import type { IssueSentences } from "#domain/form-issue.ts";
import type { Language } from "#domain/language.ts";
import { html, type Html, type HtmlPart } from "#lib/html.ts";
import type { en } from "./en.ts";

/** Everything that the pages say, in one language. A key too few or too many does not compile. */
export type Texts = Readonly<Record<Exclude<keyof typeof en, "issues">, string>> & {
  readonly issues: IssueSentences;
};

export type TextKey = Exclude<keyof Texts, "issues">;

/** A language and its texts: what a page is written with. */
export interface Tongue {
  readonly language: Language;
  readonly texts: Texts;
}

const RIGHT_TO_LEFT: ReadonlySet<Language> = new Set(["ar"]);

export const directionOf = (language: Language): "ltr" | "rtl" =>
  RIGHT_TO_LEFT.has(language) ? "rtl" : "ltr";

const PLACE = /\{(\w+)\}/;

/** A text with what stands in its places. Names may be of another direction than the sentence, so each stands for itself. */
export function say(
  { texts }: Tongue,
  key: TextKey,
  places: Readonly<Record<string, string>>,
  wrap: (value: string) => Html = (value) => html`<bdi>${value}</bdi>`,
): HtmlPart {
  return texts[key].split(PLACE).map((part, index) => (index % 2 === 0 ? part : wrap(places[part] ?? "")));
}

/** The same for places where no element can stand: a title, an attribute. */
export function plainText(
  { language, texts }: Tongue,
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
