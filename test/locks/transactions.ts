import { OF_CALLERS } from "./of-callers.ts";
import { OF_OPERATORS } from "./of-operators.ts";
import { OF_RUNS } from "./of-runs.ts";
import { OF_WORKERS } from "./of-workers.ts";
import type { Transaction } from "./transaction.ts";

/**
 * The product's transactions, on the rows of one scene. A new one is one entry here, and every pair with it is explored.
 */
export const TRANSACTIONS: readonly Transaction[] = [
  ...OF_CALLERS,
  ...OF_OPERATORS,
  ...OF_RUNS,
  ...OF_WORKERS,
];
