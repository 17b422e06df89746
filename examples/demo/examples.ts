import { suggestion } from "#domain/config-nearest.ts";
import { CommandFailed, EXIT_CODES } from "#cli/output.ts";
import { bankTransactions } from "./bank-transactions.ts";
import { browser } from "./browser.ts";
import { invoices } from "./invoices.ts";
import { meterReadings } from "./meter-readings.ts";
import { purchaseOrders } from "./purchase-orders.ts";
import type { Example } from "./example.ts";
import { threeWayMatch } from "./three-way-match.ts";

export const EXAMPLES: readonly Example[] = [
  invoices,
  purchaseOrders,
  bankTransactions,
  threeWayMatch,
  meterReadings,
  browser,
];

/** Plays every one of them. */
const ALL = "all";

/** Throws CommandFailed (usage) for an unknown name. */
export function findExamples(name: string): readonly Example[] {
  if (name === ALL) return EXAMPLES;
  const found = EXAMPLES.find((example) => example.name === name);
  if (found) return [found];
  const names = [...EXAMPLES.map((example) => example.name), ALL];
  throw new CommandFailed(
    `There is no example "${name}"${suggestion(name, names, "there are")}`,
    EXIT_CODES.usage,
  );
}
