/** What stands between such tags is not for people. */
const UNREAD = ["script", "style", "template", "svg", "title"] as const;

/** The `<title>` of a page, or null. */
export function titleOf(html: string): string | null {
  const lower = html.toLowerCase();
  const open = lower.indexOf("<title");
  const begin = open < 0 ? -1 : tagEnd(html, open);
  if (begin < 0) return null;
  const end = lower.indexOf("</title", begin);
  const text = oneLine(decodeEntities(html.slice(begin, end < 0 ? undefined : end)));
  return text === "" ? null : text;
}

/**
 * The text of a page as people read it, in one line: no markup, no attribute (a hidden input's value is none of it), no script. In one
 * pass, because a target may mean harm; what is cut off in a tag ends there.
 */
export function visibleText(html: string): string {
  const lower = html.toLowerCase();
  const parts: string[] = [];
  for (let at = 0; at < html.length;) {
    const open = html.indexOf("<", at);
    parts.push(html.slice(at, open < 0 ? undefined : open));
    if (open < 0) break;
    if (lower.startsWith("<!--", open)) {
      const end = html.indexOf("-->", open);
      at = end < 0 ? html.length : end + 3;
      continue;
    }
    if (!/[a-z/!?]/.test(lower[open + 1] ?? "")) {
      parts.push("<");
      at = open + 1;
      continue;
    }
    const end = tagEnd(html, open);
    if (end < 0) break;
    const name = /^[a-z]+/.exec(lower.slice(open + 1, open + 12))?.[0] ?? "";
    const close = (UNREAD as readonly string[]).includes(name) ? lower.indexOf(`</${name}`, end) : end;
    if (close < 0) break;
    parts.push(" ");
    at = close;
  }
  return oneLine(decodeEntities(parts.join("")));
}

/** Behind the `>` of the tag that begins there; quoted values may hold one. Negative: the tag has no end. */
function tagEnd(html: string, open: number): number {
  let quote = "";
  for (let at = open; at < html.length; at++) {
    const character = html[at] ?? "";
    if (quote !== "") quote = character === quote ? "" : quote;
    else if (character === ">") return at + 1;
    else if ((character === '"' || character === "'") && html[at - 1] === "=") quote = character;
  }
  return -1;
}

const NAMED: Readonly<Record<string, string>> = {
  amp: "&",
  lt: "<",
  gt: ">",
  quot: '"',
  apos: "'",
  nbsp: " ",
};

function decodeEntities(text: string): string {
  return text.replace(/&(?:#(\d{1,7})|#x([\da-f]{1,6})|([a-z]{2,4}));/gi, (whole, decimal, hex, name) => {
    if (name !== undefined) return NAMED[String(name).toLowerCase()] ?? whole;
    const code = decimal === undefined ? Number.parseInt(String(hex), 16) : Number(decimal);
    return code > 0 && code <= 0x10_ff_ff ? String.fromCodePoint(code) : whole;
  });
}

const oneLine = (text: string): string => text.replace(/\s+/g, " ").trim();
