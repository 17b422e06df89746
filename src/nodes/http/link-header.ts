/**
 * The target of the link with `rel=next` in a Link header (RFC 8288), or null. Parsed by hand, in one pass: the header is
 * untrusted, and regular expressions over quoted parts can become slow.
 */
export function nextLink(header: string): string | null {
  for (const link of splitOutside(header, ",")) {
    const [target, ...parameters] = splitOutside(link, ";").map((part) => part.trim());
    if (target === undefined || !target.startsWith("<") || !target.endsWith(">")) continue;
    const named = parameters.map((parameter) => {
      const [name, ...rest] = parameter.split("=");
      return { name: (name ?? "").trim().toLowerCase(), value: unquoted(rest.join("=").trim()) };
    });
    // RFC 8288, 3.2 and 3.3: a link with another anchor belongs to another page; only the first `rel` counts, and it may contain
    // several types.
    if (named.some(({ name }) => name === "anchor")) continue;
    const relations =
      named
        .find(({ name }) => name === "rel")
        ?.value.toLowerCase()
        .split(/\s+/) ?? [];
    if (relations.includes("next")) return target.slice(1, -1).trim();
  }
  return null;
}

/** Splits at a character that is outside `<…>` and `"…"`. */
function splitOutside(text: string, separator: string): readonly string[] {
  const parts: string[] = [];
  let start = 0;
  let inside: ">" | '"' | null = null;
  for (let at = 0; at < text.length; at += 1) {
    const character = text[at];
    if (inside === '"' && character === "\\") at += 1;
    else if (inside !== null) inside = character === inside ? null : inside;
    else if (character === "<") inside = ">";
    else if (character === '"') inside = '"';
    else if (character === separator) {
      parts.push(text.slice(start, at));
      start = at + 1;
    }
  }
  return [...parts, text.slice(start)];
}

function unquoted(value: string): string {
  return value.startsWith('"') && value.endsWith('"') && value.length > 1
    ? value.slice(1, -1).replaceAll(/\\(.)/g, "$1")
    : value;
}
