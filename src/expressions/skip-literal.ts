/**
 * Reads just enough JSONata to skip the parts that may contain any character: strings, quoted names, comments and regular
 * expressions. Follows the tokenizer of jsonata 2.2.
 */

/**
 * Returns the offset after the literal that begins at `at`; `at` if none begins there; `text.length + 1` if the literal never
 * ends. `start` is where the expression begins: whether `/` divides depends on the text before it.
 */
export function skipLiteral(text: string, start: number, at: number): number {
  switch (text[at]) {
    case '"':
    case "'":
      return skipString(text, at);
    case "`":
      return after(text.indexOf("`", at + 1), 1, text);
    case "/":
      if (text[at + 1] === "*") return after(text.indexOf("*/", at + 2), 2, text);
      return divides(text, start, at) ? at : skipRegex(text, at);
    default:
      return at;
  }
}

function after(found: number, width: number, text: string): number {
  return found === -1 ? text.length + 1 : found + width;
}

function skipString(text: string, at: number): number {
  const quote = text[at];
  for (let index = at + 1; index < text.length; index++) {
    if (text[index] === "\\") index++;
    else if (text[index] === quote) return index + 1;
  }
  return text.length + 1;
}

/** As jsonata's `scanRegex`: the end is an unescaped `/` outside of brackets. */
function skipRegex(text: string, at: number): number {
  let depth = 0;
  for (let index = at + 1; index < text.length; index++) {
    const character = text[index] ?? "";
    if (character === "\\") index++;
    else if (character === "/" && depth === 0) return index + 1;
    else if ("([{".includes(character)) depth++;
    else if (")]}".includes(character)) depth--;
  }
  return text.length + 1;
}

/** `/` after an operand divides; anywhere else it begins a regular expression. */
function divides(text: string, start: number, at: number): boolean {
  let index = at - 1;
  while (index >= start && " \t\n\r\v".includes(text[index] ?? "")) index--;
  if (index < start) return false;
  if ("([{,;:=<>+-*/%&|^?!~@#.".includes(text[index] ?? "")) return false;
  const word = /(?:^|[^\w$])(and|or|in)$/.exec(text.slice(Math.max(start, index - 4), index + 1));
  return word === null;
}
