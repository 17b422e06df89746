import { NodeFailure } from "#nodes/define-node.ts";
import { describeRequest, type HttpConfig } from "./http-config.ts";

/** Called when everything was read. Throws NodeFailure if there are fewer records than the document requires. */
export function requireRecords(config: HttpConfig, total: number): void {
  const { expect, for_each: each } = config;
  const fewest = expect?.min_records ?? 0;
  if (total >= fewest) return;
  const place = `${describeRequest(config)}${each === undefined ? "" : ", all requests together"}`;
  throw new NodeFailure(`${place} returned ${total} records; expected at least ${fewest}.`);
}
