import { NodeFailure } from "#nodes/define-node.ts";
import { describeRequest, type HttpConfig } from "./http-config.ts";

/** All is read. Throws NodeFailure when it is less than the document expects. */
export function requireRecords(config: HttpConfig, total: number): void {
  const { expect, for_each: each } = config;
  const fewest = expect?.min_records ?? 0;
  if (total >= fewest) return;
  const place = `${describeRequest(config)}${each === undefined ? "" : ", all requests together"}`;
  throw new NodeFailure(`${place} gave ${total} records; expected are at least ${fewest}.`);
}
