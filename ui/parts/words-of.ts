/** Words that are written otherwise than other words. */
const WORDS: Readonly<Record<string, string>> = { oauth: "OAuth", id: "ID", totp: "TOTP", url: "URL" };

/** A key of a document or of JSON as people write it: `purchase_order` is "Purchase order". */
export function wordsOf(key: string): string {
  const words = key
    .replace(/(?<=[a-z])(?=[A-Z])/g, "_")
    .split(/[_-]+/)
    .filter(Boolean)
    .map((word) => WORDS[word.toLowerCase()] ?? word.toLowerCase());
  const text = words.join(" ");
  return text.charAt(0).toUpperCase() + text.slice(1);
}
