/** Tokens of a `User-Agent` header, the most telling first: Edge and Opera also name Chrome, and Chrome also Safari. */
const BROWSERS = [
  [/\bEdg(?:e|A|iOS)?\//, "Edge"],
  [/\bOPR\//, "Opera"],
  [/\b(?:Firefox|FxiOS)\//, "Firefox"],
  [/\b(?:HeadlessChrome|Chrome|Chromium|CriOS)\//, "Chrome"],
  [/\bVersion\/[\d.]+ (?:Mobile\/\S+ )?Safari\//, "Safari"],
] as const;
const SYSTEMS = [
  [/\b(?:iPhone|iPad)\b/, "iOS"],
  [/\bAndroid\b/, "Android"],
  [/\bCrOS\b/, "ChromeOS"],
  [/\bWindows\b/, "Windows"],
  [/\bMac OS X\b/, "macOS"],
  [/\bLinux\b/, "Linux"],
] as const;

const firstOf = (names: readonly (readonly [RegExp, string])[], text: string): string | undefined =>
  names.find(([pattern]) => pattern.test(text))?.[1];

/** A browser as people know it, such as "Firefox on Linux"; of an unknown one, what it says of itself. */
export function browserName(userAgent: string): string {
  const browser = firstOf(BROWSERS, userAgent);
  const system = firstOf(SYSTEMS, userAgent);
  if (browser === undefined) return userAgent === "" ? "Unknown browser" : userAgent;
  return system === undefined ? browser : `${browser} on ${system}`;
}
