/** The languages of the pages that end users see, by their BCP 47 tags. */
export const LANGUAGES = ["en", "de", "fr", "es", "it", "pt", "nl", "pl", "ja", "ar"] as const;
export type Language = (typeof LANGUAGES)[number];

/** Text in an operator's document: one for all languages, or one per language. */
export type LocalText = string | Readonly<Partial<Record<Language, string>>>;

export const isLanguage = (text: string): text is Language => LANGUAGES.some((language) => language === text);

/** The text in a language; without one, the English text, or else the first. */
export function textIn(text: LocalText, language: Language): string {
  if (typeof text === "string") return text;
  return text[language] ?? text.en ?? Object.values(text)[0] ?? "";
}
