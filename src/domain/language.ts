/** The languages of the pages that end users see, by their BCP 47 tags. */
export const LANGUAGES = ["en", "de", "fr", "es", "it", "pt", "nl", "pl", "ja", "ar"] as const;
export type Language = (typeof LANGUAGES)[number];

/** A text of an operator's document: the same for everybody, or one for each of some languages. */
export type LocalText = string | Readonly<Partial<Record<Language, string>>>;

export const isLanguage = (text: string): text is Language => LANGUAGES.some((language) => language === text);

/** The text in a language; where it has none, in English, else in the first language that it has. */
export function textIn(text: LocalText, language: Language): string {
  if (typeof text === "string") return text;
  return text[language] ?? text.en ?? Object.values(text)[0] ?? "";
}
