import { randomInt } from "node:crypto";
import { OWN_PROCESS } from "./tiers.ts";

/** Files that share a process. */
export interface Batch {
  readonly name: string;
  readonly files: readonly string[];
}

/** How many files share a process, by what they need. */
const FILES_MAX = { own: 1, faults: 4, e2e: 4, pg: 14, unit: 25 } as const;
type Kind = keyof typeof FILES_MAX;

/** The order repeats with the same number: LATCHKEY_TEST_SEED. */
export function newSeed(given: string | undefined = process.env["LATCHKEY_TEST_SEED"]): number {
  return given === undefined || given === "" ? randomInt(2 ** 32) : Number(given);
}

/**
 * Puts the files into batches, those that take longest first. Unit files come in random order: one that needs what another
 * has left behind fails sooner or later.
 */
export function makeBatches(files: readonly string[], seed: number): readonly Batch[] {
  const byKind = new Map<Kind, string[]>([
    ["own", []],
    ["faults", []],
    ["e2e", []],
    ["pg", []],
    ["unit", []],
  ]);
  for (const file of files) byKind.get(kindOf(file))?.push(file);
  return [...byKind].flatMap(([kind, members]) => {
    const ordered = kind === "unit" ? shuffle(members, seed) : members;
    return chunks(ordered, FILES_MAX[kind]).map((chunk) => ({ name: kind, files: chunk }));
  });
}

function kindOf(file: string): Kind {
  if (file in OWN_PROCESS) return "own";
  if (file.startsWith("test/flow/")) return "faults";
  if (file.endsWith(".e2e.ts")) return "e2e";
  return file.endsWith(".pg.test.ts") ? "pg" : "unit";
}

function chunks<T>(items: readonly T[], size: number): readonly (readonly T[])[] {
  return Array.from({ length: Math.ceil(items.length / size) }, (_, index) =>
    items.slice(index * size, (index + 1) * size),
  );
}

/** Sorts by random numbers of a generator with a seed (mulberry32). */
function shuffle<T>(items: readonly T[], seed: number): readonly T[] {
  let state = seed >>> 0;
  const next = (): number => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  const keyed = items.map((item) => ({ item, key: next() }));
  return keyed.toSorted((one, other) => one.key - other.key).map(({ item }) => item);
}
