/** The origins of a text with one per line, or what is wrong with the first line that is none. */
export function readOrigins(
  text: string,
): { readonly origins: readonly string[] } | { readonly problem: string } {
  const origins: string[] = [];
  for (const [at, line] of text.split("\n").entries()) {
    const typed = line.trim();
    if (typed === "") continue;
    if (!isOrigin(typed))
      return {
        problem: `Line ${at + 1}: an origin is only scheme, host and port, for example https://app.example.com.`,
      };
    origins.push(typed);
  }
  return { origins };
}

const isOrigin = (text: string): boolean => /^https?:\/\/[^/?#@\s]+$/i.test(text) && URL.canParse(text);
