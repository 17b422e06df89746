import type { OperatorAnswer } from "#contract/operator/operation.ts";
import type * as proposals from "#contract/operator/proposals.ts";
import type * as reviews from "#contract/operator/reviews.ts";
import type * as runs from "#contract/operator/runs.ts";
import type * as system from "#contract/operator/system.ts";

/** What pages hand on, under the names that people use. */
export type ListedRun = OperatorAnswer<typeof runs.listRuns>["items"][number];
export type Run = OperatorAnswer<typeof runs.readRun>;
export type RunStep = Run["steps"][number];
export type RunGraphData = OperatorAnswer<typeof runs.readRunGraph>;
export type ResultRecord = OperatorAnswer<typeof runs.listResultRecords>["items"][number];
export type Overview = OperatorAnswer<typeof system.readOverview>;
export type WriteGroup = OperatorAnswer<typeof system.listWriteGroups>["items"][number];
export type UncertainWrite = OperatorAnswer<typeof system.listWrites>["items"][number];
export type DecidedWrites = OperatorAnswer<typeof system.decideWriteGroup>;
export type ListedProposal = OperatorAnswer<typeof proposals.listProposals>["items"][number];
export type Proposal = OperatorAnswer<typeof proposals.readProposal>;
export type Review = OperatorAnswer<typeof reviews.readReview>;
export type ReviewRecord = OperatorAnswer<typeof reviews.listReviewRecords>["items"][number];

/** An error of a record, as far as it is what the contract of Blueprints says. */
export interface RecordProblem {
  readonly field: string | null;
  readonly message: string;
}

export function problemsOf(errors: readonly unknown[]): readonly RecordProblem[] {
  return errors.map((error) => {
    const { field, message } = (error ?? {}) as { field?: unknown; message?: unknown };
    return {
      field: typeof field === "string" ? field : null,
      message: typeof message === "string" ? message : JSON.stringify(error),
    };
  });
}

/** A record's data by its keys; what is no object stands under `value`. */
export function fieldsOf(data: unknown): Readonly<Record<string, unknown>> {
  return typeof data === "object" && data !== null && !Array.isArray(data)
    ? (data as Readonly<Record<string, unknown>>)
    : { value: data };
}

/** As text: what is no text is its JSON. */
export function textOf(value: unknown): string {
  if (value === undefined) return "";
  return typeof value === "string" ? value : JSON.stringify(value);
}
