import assert from "node:assert/strict";
import type { ApiAnswer } from "../caller.ts";
import { expectContract } from "./expect-contract.ts";

/** Every operation and status that was seen and held to the contract. */
export const seen = new Set<string>();

/** The answer must be what the contract says, with this status. Gives the body. */
export function check(operation: string, status: number, answer: ApiAnswer): any {
  assert.equal(answer.status, status, `${operation}: ${answer.text}`);
  seen.add(`${operation} ${status}`);
  return expectContract(operation, answer);
}

/** A refusal, with the fields and codes of its details. */
export function checkRefusal(
  operation: string,
  status: number,
  answer: ApiAnswer,
  details: readonly string[] = [],
): void {
  const { error } = check(operation, status, answer);
  const shown = (error.details ?? []).map(
    ({ field, code }: { field: string | null; code: string }) => `${field} ${code}`,
  );
  assert.deepEqual(shown, details, answer.text);
}
