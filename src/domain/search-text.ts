import { limits } from "./limits.ts";

/** The text that a search finds a run by: a line for its name and one for each metadata value. Empty: nothing. */
export function searchText(name: string | null, metadata: Readonly<Record<string, string>>): string {
  const lines = [name ?? "", ...Object.values(metadata)].map(searchLine).filter((line) => line !== "");
  return lines.join("\n").slice(0, limits.searchTextCharactersMax);
}

/** In the form of `searchText`: lower case, without line breaks and NUL, which PostgreSQL does not store. */
export const searchLine = (text: string): string =>
  text
    .toLowerCase()
    .replaceAll(/[\n\r\0]+/g, " ")
    .trim();

const GRAM = 3;

/** A number for every three successive characters of each line. A text that contains another has all of its numbers. */
export function gramsOf(text: string): readonly number[] {
  const grams = new Set<number>();
  for (const line of text.split("\n"))
    for (let at = 0; at + GRAM <= line.length; at++) grams.add(hashOf(line, at));
  return [...grams];
}

/** Different characters may have the same number: a match must be compared with the text itself. */
function hashOf(line: string, at: number): number {
  let hash = 0;
  for (let index = at; index < at + GRAM; index++)
    hash = (Math.imul(hash, 65_599) + line.charCodeAt(index)) | 0;
  return hash;
}
