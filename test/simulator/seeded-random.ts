import type { Random } from "#lib/random.ts";

/** Chance that repeats itself: the same seed gives the same numbers (splitmix32). */
export class SeededRandom implements Random {
  #state: number;

  constructor(seed: number) {
    this.#state = seed >>> 0;
  }

  #next(): number {
    this.#state = (this.#state + 0x9e3779b9) >>> 0;
    let mixed = this.#state ^ (this.#state >>> 16);
    mixed = Math.imul(mixed, 0x21f0aaad);
    mixed ^= mixed >>> 15;
    mixed = Math.imul(mixed, 0x735a2d97);
    return (mixed ^ (mixed >>> 15)) >>> 0;
  }

  /** From 0 up to, and without, 1. */
  fraction(): number {
    return (this.#next() * 2 ** 21 + (this.#next() >>> 11)) / 2 ** 53;
  }

  integer(least: number, below: number): number {
    return least + Math.floor(this.fraction() * (below - least));
  }

  between(least: number, most: number): number {
    return least + this.fraction() * (most - least);
  }

  isHit(chance: number): boolean {
    return this.fraction() < chance;
  }

  pick<T>(items: readonly T[]): T {
    const item = items[this.integer(0, items.length)];
    if (item === undefined) throw new Error("There is nothing to pick from.");
    return item;
  }

  /** Another sequence, which does not move when this one is drawn from more often. */
  fork(name: string): SeededRandom {
    let hash = 0x811c9dc5;
    for (const character of name) hash = Math.imul(hash ^ (character.codePointAt(0) ?? 0), 0x01000193);
    return new SeededRandom(hash ^ this.#state);
  }
}
