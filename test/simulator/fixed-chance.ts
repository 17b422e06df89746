import crypto from "node:crypto";
import { syncBuiltinESMExports } from "node:module";
import { randomBase62 } from "#lib/new-id.ts";
import { SeededRandom } from "./seeded-random.ts";

/** When the simulated world begins: ids begin with their time. */
const EPOCH_MS = Date.UTC(2030, 0, 1);

/**
 * Makes the ids of this process come from a seed, and their times from a clock, until it is disposed of: rows are ordered by them. The
 * product's ids, keys and tokens come from the system alone, and have no way to say otherwise; so this replaces what Node gives.
 */
export function fixChance(seed: number, nowMs: () => number): Disposable {
  const random = new SeededRandom(seed).fork("ids");
  const { randomBytes, randomUUID, randomUUIDv7, randomInt } = crypto;
  const { now } = Date;
  const { random: fraction } = Math;
  const waits = random.fork("waits");
  let fetches = 0;
  const bytes = (size: number): Buffer => {
    fetches++;
    const filled = Buffer.alloc(size);
    for (let at = 0; at < size; at++) filled[at] = random.integer(0, 256);
    return filled;
  };
  let uuids = 0;
  const uuid = (): string => {
    const hex = bytes(16).toString("hex");
    const count = (uuids++).toString(16).padStart(12, "0");
    return `${count.slice(0, 8)}-${count.slice(8)}-7${hex.slice(0, 3)}-8${hex.slice(3, 6)}-${hex.slice(6, 18)}`;
  };
  Object.assign(crypto, {
    randomBytes: bytes,
    randomUUID: uuid,
    randomUUIDv7: uuid,
    randomInt: (least: number, below?: number) =>
      below === undefined ? random.integer(0, least) : random.integer(least, below),
  });
  Math.random = () => waits.fraction();
  Date.now = () => EPOCH_MS + Math.floor(nowMs());
  syncBuiltinESMExports();
  // What was fetched before this seed is used up.
  while (fetches === 0) randomBase62(1);
  return {
    [Symbol.dispose]: () => {
      Object.assign(crypto, { randomBytes, randomUUID, randomUUIDv7, randomInt });
      Date.now = now;
      Math.random = fraction;
      syncBuiltinESMExports();
    },
  };
}

export { EPOCH_MS };
