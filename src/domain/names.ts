import { limits } from "./limits.ts";

/** docs/decisions/0011: labels have at most 255 characters (code points) and no U+0000. */
export function isWellFormedName(text: string): boolean {
  return (
    Array.from(text).length <= limits.nameCharactersMax && !text.includes("\u0000") && text.isWellFormed()
  );
}
