import { limits } from "./limits.ts";

const NAME = /^[A-Za-z0-9_.-]+$/;

/**
 * A session's metadata as JSON text, in the given order; or the first problem, with the path of the field. Values are the caller's own
 * references, so they are never interpreted.
 */
export function writeSessionMetadata(
  pairs: Iterable<readonly [name: string, value: unknown]>,
): { readonly text: string } | { readonly field: string; readonly problem: string } {
  const { items, nameCharacters, valueCharacters } = limits.sessionMetadata;
  const parts: string[] = [];
  for (const [name, value] of pairs) {
    if (!NAME.test(name) || name.length > nameCharacters)
      return {
        field: "metadata",
        problem: `Names in \`metadata\` must have 1 to ${nameCharacters} of the characters A-Z, a-z, 0-9, _, . and -.`,
      };
    const field = `metadata.${name}`;
    if (typeof value !== "string") return { field, problem: `\`${field}\` must be a string.` };
    if (Array.from(value).length > valueCharacters || value.includes("\u0000") || !value.isWellFormed())
      return {
        field,
        problem: `\`${field}\` must have at most ${valueCharacters} characters and no U+0000.`,
      };
    parts.push(`${JSON.stringify(name)}:${JSON.stringify(value)}`);
  }
  if (parts.length > items)
    return { field: "metadata", problem: `\`metadata\` must have at most ${items} items.` };
  return { text: `{${parts.join(",")}}` };
}

/** The metadata as it was given. `text` is what `writeSessionMetadata` wrote. */
export const readSessionMetadata = (text: string): Record<string, string> =>
  JSON.parse(text) as Record<string, string>;
