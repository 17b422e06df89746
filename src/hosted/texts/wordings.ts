import { LANGUAGES, isLanguage, type Language } from "#domain/language.ts";
import { ar } from "./ar.ts";
import { de } from "./de.ts";
import { en } from "./en.ts";
import { es } from "./es.ts";
import { fr } from "./fr.ts";
import { it } from "./it.ts";
import { ja } from "./ja.ts";
import { nl } from "./nl.ts";
import { pl } from "./pl.ts";
import { pt } from "./pt.ts";
import type { Texts, Wording } from "./texts.ts";

export const TEXTS: Readonly<Record<Language, Texts>> = { en, de, fr, es, it, pt, nl, pl, ja, ar };

/** What each language calls itself. */
export const LANGUAGE_NAMES: Readonly<Record<Language, string>> = {
  en: "English",
  de: "Deutsch",
  fr: "Français",
  es: "Español",
  it: "Italiano",
  pt: "Português",
  nl: "Nederlands",
  pl: "Polski",
  ja: "日本語",
  ar: "العربية",
};

export const wordingOf = (language: Language): Wording => ({ language, texts: TEXTS[language] });

const RANGES_MAX = 50;

/**
 * The language of an `Accept-Language` (RFC 9110, 12.5.4) that a page can have: the highest quality first, of equals the first
 * written; `pt-BR` finds `pt` (RFC 4647, 3.4). What is excluded by `q=0` is not taken for `*`. English where nothing fits.
 */
export function negotiateLanguage(header: string | undefined): Language {
  const ranges = (header ?? "").split(",", RANGES_MAX).flatMap((range, index) => {
    const [tag = "", ...parameters] = range.split(";").map((part) => part.trim().toLowerCase());
    const quality = parameters
      .map((parameter) => /^q\s*=\s*([01](?:\.\d{0,3})?)$/.exec(parameter)?.[1])
      .at(0);
    if (parameters.length > 0 && quality === undefined) return [];
    return /^(\*|[a-z]{1,8}(-[a-z0-9]{1,8})*)$/.test(tag)
      ? [{ tag, quality: Number(quality ?? 1), index }]
      : [];
  });
  const baseOf = (tag: string): string => tag.split("-", 1)[0] ?? "";
  const excluded = new Set(ranges.filter(({ quality }) => quality === 0).map(({ tag }) => tag));
  const wanted = ranges
    .filter(({ quality }) => quality > 0)
    .toSorted((a, b) => b.quality - a.quality || a.index - b.index);
  for (const { tag } of wanted) {
    const named = new Set(wanted.map((range) => baseOf(range.tag)));
    const found =
      tag === "*"
        ? LANGUAGES.find((language) => !excluded.has(language) && !named.has(language))
        : LANGUAGES.find((language) => language === baseOf(tag));
    if (found !== undefined) return found;
  }
  return "en";
}

/** The language that an end user chose on the page, by the address's `lang`. */
export function chosenLanguage(query: unknown): Language | null {
  const { lang } = (query ?? {}) as { lang?: unknown };
  return typeof lang === "string" && isLanguage(lang) ? lang : null;
}
