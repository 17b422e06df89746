import { createHash } from "node:crypto";
import type { Site } from "./sites.ts";

/**
 * Some of the sites: the same ones for the same seed. Kinds take turns, and in a kind the folders of `src/` do, so that a few say
 * something of all.
 */
export function sample(sites: readonly Site[], seed: string, count: number): readonly Site[] {
  const shuffled = sites
    .map((site) => ({ site, key: hashOf(`${seed} ${nameOf(site)} ${site.start}`) }))
    .toSorted((one, other) => (one.key < other.key ? -1 : 1))
    .map(({ site }) => site);
  const byKind = [...Map.groupBy(shuffled, ({ kind }) => kind).values()];
  return inTurns(byKind.map((own) => inTurns([...Map.groupBy(own, folderOf).values()]))).slice(0, count);
}

/** As a person finds it again. */
export const nameOf = ({ file, line, kind }: Site): string => `${file}:${line} ${kind}`;

const folderOf = ({ file }: Site): string => file.split("/")[1] ?? "";

const hashOf = (text: string): string => createHash("sha256").update(text).digest("hex");

/** The first of each list, then the second of each. */
function inTurns<T>(lists: readonly (readonly T[])[]): readonly T[] {
  const longest = Math.max(0, ...lists.map(({ length }) => length));
  return Array.from({ length: longest }, (_, at) => lists.flatMap((list) => list.slice(at, at + 1))).flat();
}
