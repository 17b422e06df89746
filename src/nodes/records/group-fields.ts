import type { Json } from "#domain/json.ts";
import { limits } from "#domain/limits.ts";
import { must } from "#lib/assert.ts";
import { compareJson } from "./compare-json.ts";
import { NodeFailure } from "#nodes/define-node.ts";
import { ExactSum, readDecimal } from "./exact-sum.ts";
import { sizeOf } from "./sort-keyed.ts";

/** Aggregates the values of a group, in the order of its records. Missing values are skipped by the caller. */
export interface Accumulator {
  add(value: Json): void;
  get(): Json;
}

export type Aggregate = "sum" | "count" | "min" | "max" | "first" | "last" | "collect";

/** `place` is the beginning of messages. */
export const ACCUMULATORS: Readonly<Record<Aggregate, (place: string) => Accumulator>> = {
  sum: sumOf,
  count: () => {
    let count = 0;
    return { add: () => void (count += 1), get: () => count };
  },
  min: () => chosen((found, value) => compareJson(value, found) < 0),
  max: () => chosen((found, value) => compareJson(value, found) > 0),
  first: () => chosen(() => false),
  last: () => chosen(() => true),
  collect,
};

/** Keeps one of the values; null: there was none. */
function chosen(isBetter: (found: Json, value: Json) => boolean): Accumulator {
  let found: Json = null;
  return {
    add(value) {
      if (found === null || isBetter(found, value)) found = value;
    },
    get: () => found,
  };
}

function sumOf(place: string): Accumulator {
  const sum = new ExactSum();
  return {
    add: (value) => sum.add(value, must(readDecimal(value), "a checked number")),
    get() {
      const total = sum.get();
      if (typeof total === "number" && !Number.isFinite(total))
        throw new NodeFailure(`The group of ${place}: the sum is too large for a number.`);
      return total;
    },
  };
}

function collect(place: string): Accumulator {
  const values: Json[] = [];
  let characters = 0;
  return {
    add(value) {
      values.push(value);
      characters += sizeOf(value);
      if (values.length > limits.collectedValuesMax || characters > limits.collectedCharactersMax)
        throw new NodeFailure(
          `The group of ${place}: there are more than ${limits.collectedValuesMax} values, or ${limits.collectedCharactersMax} characters, to collect.`,
        );
    },
    get: () => values,
  };
}
