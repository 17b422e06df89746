import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { explainIssue, ISSUES, type IssueCode, type Sentence } from "#domain/form-issue.ts";
import { LANGUAGES, textIn } from "#domain/language.ts";
import { say, plainText, type TextKey } from "#hosted/texts/texts.ts";
import {
  chosenLanguage,
  LANGUAGE_NAMES,
  negotiateLanguage,
  TEXTS,
  wordingOf,
} from "#hosted/texts/wordings.ts";

suite("Accept-Language", () => {
  const cases: readonly (readonly [header: string | undefined, language: string])[] = [
    [undefined, "en"],
    ["", "en"],
    ["de", "de"],
    ["de-CH, fr;q=0.9", "de"],
    ["pt-BR,pt;q=0.9,en-US;q=0.8,en;q=0.7", "pt"],
    ["EN-gb;q=0.2, AR-EG ; q=0.9", "ar"],
    ["sv, nb;q=0.9, pl;q=0.1", "pl"],
    ["sv", "en"],
    ["fr;q=0, es;q=0.1", "es"],
    ["fr;q=0.5, it;q=0.5", "fr"],
    ["*", "en"],
    ["en;q=0, *", "de"],
    ["*;q=0.5, ja;q=0.4", "en"],
    ["zh-Hant-TW, ja-JP;q=0.300", "ja"],
    ["de;q=2, nl", "nl"],
    ["de;level=1, nl;q=0.1", "nl"],
    ["de_DE, nl;q=0.1", "nl"],
    ["constructor, __proto__;q=0.9", "en"],
    [`${"x,".repeat(100_000)}de`, "en"],
  ];
  for (const [header, language] of cases)
    test(`${String(header).slice(0, 40)} is ${language}`, () =>
      assert.equal(negotiateLanguage(header), language));
});

test("only a language that there is can be chosen, once", () => {
  assert.equal(chosenLanguage({ lang: "pl" }), "pl");
  for (const query of [undefined, {}, { lang: "PL" }, { lang: "sv" }, { lang: ["pl", "de"] }, { lang: "" }])
    assert.equal(chosenLanguage(query), null);
});

const placesOf = (text: string): string => (text.match(/\{\w+\}/g) ?? []).toSorted().join();
const formsOf = (sentence: Sentence): readonly string[] =>
  typeof sentence === "string" ? [sentence] : Object.values(sentence);

for (const language of LANGUAGES) {
  test(`${language} has every text, with the places that English has, and no other script's leftovers`, () => {
    const { issues, ...texts } = TEXTS[language];
    const { issues: english, ...originals } = TEXTS.en;
    for (const [key, text] of Object.entries(texts)) {
      assert.equal(placesOf(text), placesOf(originals[key as TextKey]), key);
      assert.equal(text, text.trim());
    }
    for (const code of Object.keys(ISSUES) as IssueCode[]) {
      for (const form of formsOf(issues[code]))
        assert.equal(placesOf(form), placesOf(formsOf(english[code])[0] ?? ""), code);
    }
    // Translated, not copied: of the longer texts none is English.
    if (language === "en") return;
    const long = Object.entries(texts).filter(([key]) => originals[key as TextKey].length > 25);
    for (const [key, text] of long) assert.notEqual(text, originals[key as TextKey], key);
  });

  test(`${language} has a form for every number that it tells apart`, () => {
    const categories = new Intl.PluralRules(language).resolvedOptions().pluralCategories;
    for (const code of ["too_short", "over_maximum"] as const) {
      const forms = TEXTS[language].issues[code];
      assert.ok(typeof forms !== "string");
      // French, Spanish, Italian and Portuguese have a form for millions, which no length reaches.
      const wanted = categories.filter((name) => name !== "many" || ["pl", "ar"].includes(language));
      for (const category of wanted) assert.ok(forms[category], `${code} ${category}`);
    }
  });
}

test("what begins a link stays as it is among words from right to left, also where a line ends", () => {
  const { issues, ...texts } = TEXTS.ar;
  const all = [...Object.values(texts), ...Object.values(issues).flatMap(formsOf)];
  const links = all.filter((text) => text.includes("otpauth"));
  assert.ok(links.length > 2);
  for (const text of links) assert.doesNotMatch(text, /(?<!\u2066)otpauth:|otpauth:[\w/]*(?!\u2069|[\w/])/);
});

test("a language calls itself by its own name, and each name is another's", () => {
  assert.equal(new Set(Object.values(LANGUAGE_NAMES)).size, LANGUAGES.length);
});

test("what stands in a place is text, of its own direction, and no place itself", () => {
  const system = `<b>{account}</b>`;
  assert.equal(
    String([say(wordingOf("en"), "connect_title", { system, account: "x" })].flat(9).map(String).join("")),
    "Connect <bdi>&lt;b&gt;{account}&lt;/b&gt;</bdi>",
  );
  assert.equal(plainText(wordingOf("en"), "connect_title", { system }), `Connect ${system}`);
  assert.equal(plainText(wordingOf("ar"), "connect_title", { system: "X" }), "ربط \u2068X\u2069");
  const sentences = { language: "en", sentences: TEXTS.en.issues };
  assert.equal(
    explainIssue({ code: "required" }, "{count} {field}", sentences),
    "{count} {field} is required.",
  );
});

test("a text of a document: the page's language, else English, else the first", () => {
  assert.equal(textIn("plain", "de"), "plain");
  assert.equal(textIn({ en: "E", de: "D" }, "de"), "D");
  assert.equal(textIn({ en: "E", de: "D" }, "fr"), "E");
  assert.equal(textIn({ pl: "P", de: "D" }, "fr"), "P");
});
