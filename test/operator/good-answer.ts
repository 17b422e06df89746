import assert from "node:assert/strict";
import { OPERATOR_OPERATIONS } from "../../scripts/generate/operator-operations.ts";
import { matchesSchema } from "#domain/matches-schema.ts";
import type { Browser, OperatorAnswer } from "./browser.ts";

/** Calls an operation at a path: its answer must have the operation's status, and be what its schema says. */
export async function goodAnswer(
  browser: Browser,
  id: string,
  path: string,
  body?: unknown,
): Promise<OperatorAnswer> {
  const operation = OPERATOR_OPERATIONS.find((each) => each.id === id) ?? assert.fail(id);
  const answer = await browser.send(operation.method.toUpperCase(), path, body);
  assert.equal(answer.status, operation.status, `${id}: ${answer.text}`);
  if (operation.answer) assert.ok(matchesSchema(operation.answer, answer.body), `${id}: ${answer.text}`);
  return answer;
}
