import { randomInt } from "node:crypto";

/**
 * Random numbers for spreading waits and choosing among equals. Keys, tokens and ids use the system's generator instead. Passed
 * as a parameter, so that a simulation can repeat them.
 */
export interface Random {
  /** An integer from `least` to `below`, exclusive. They differ by less than 2^48. */
  integer(least: number, below: number): number;
}

export const systemRandom: Random = { integer: (least, below) => randomInt(least, below) };
