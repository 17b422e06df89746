import type { JsonObject } from "#domain/json.ts";
import { validRecord, type DataRecord } from "#domain/record.ts";
import { recordScopes } from "#nodes/records/record-flow.ts";
import { recordCheck, type RecordCheck } from "#nodes/types/validate.ts";
import { expressionsOf } from "./node-expressions.ts";
import type { PlannedNode, RunContext } from "./run-context.ts";

export interface EditedRecord {
  readonly ordinal: number;
  readonly before: DataRecord;
  readonly data: JsonObject;
}

/** The records with their new data. */
export type Recheck = (edited: readonly EditedRecord[]) => Promise<readonly DataRecord[]>;

/** Nodes that pass a record's data unchanged, so that earlier checks remain valid after them. */
const KEEP_DATA: readonly string[] = ["filter", "sort", "dedupe", "review"];

/**
 * Validates edited records again: their old errors refer to old data, so they pass the `validate` nodes that checked exactly this data
 * before the review. Without such a node they keep their errors.
 */
export async function recheckEdited(run: RunContext, planned: PlannedNode): Promise<Recheck> {
  const checks: RecordCheck[] = [];
  for (const node of checkersBefore(run, planned))
    checks.push(recordCheck(await expressionsOf(run, node), node.config));
  return async (edited) => {
    if (checks.length === 0)
      return edited.map(({ before, data }) => ({ data, errors: before.errors, isValid: before.isValid }));
    let records: readonly DataRecord[] = edited.map(({ data }) => validRecord(data));
    for (const check of checks) {
      const scopes = records.flatMap((record, index) => recordScopes([record], edited[index]?.ordinal ?? 0));
      records = await check(records, scopes);
    }
    return records;
  };
}

/** In the order in which the records passed them. Follows single edges only: where lists meet, a record may come from either. */
function checkersBefore(run: RunContext, gate: PlannedNode): readonly PlannedNode[] {
  const found: PlannedNode[] = [];
  for (let at: PlannedNode | undefined = gate; at?.edges.length === 1;) {
    const id: string | undefined = at.edges[0];
    at = run.plan.nodes.find(({ node }) => node.id === id);
    if (at?.node.type === "validate") found.unshift(at);
    else if (!KEEP_DATA.includes(at?.node.type ?? "")) break;
  }
  return found;
}
