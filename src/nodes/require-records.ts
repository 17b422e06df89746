import { NodeFailure } from "./define-node.ts";
import type { HttpConfig } from "./http-config.ts";

/** All is read. Throws NodeFailure when it is less than the document expects. */
export function requireRecords({ expect, request, for_each: each }: HttpConfig, total: number): void {
  const fewest = expect?.min_records ?? 0;
  if (total >= fewest) return;
  const place = `${request.method ?? "GET"} ${request.url}${each === undefined ? "" : ", all requests together"}`;
  throw new NodeFailure(`${place} gave ${total} records; expected are at least ${fewest}.`);
}
