import { randomInt } from "node:crypto";

/** Chance, for spreading waits and choosing among equals; keys, tokens and ids take theirs from the system. Handed in, so that a simulation repeats it. */
export interface Random {
  /** From `least` up to, and without, `below`: a difference of less than 2^48. */
  integer(least: number, below: number): number;
}

export const systemRandom: Random = { integer: (least, below) => randomInt(least, below) };
