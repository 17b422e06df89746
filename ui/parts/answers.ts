import type {
  decideWriteGroup,
  listProposals,
  listResultRecords,
  listReviewRecords,
  listRuns,
  listWriteGroups,
  listWrites,
  readOverview,
  readProposal,
  readReview,
  readRun,
  readRunGraph,
} from "../api/operations.ts";
import type { AnswerOf } from "../api/request.ts";

/** Types of answers that pages pass on, under readable names. */
export type ListedRun = AnswerOf<typeof listRuns>["items"][number];
export type Run = AnswerOf<typeof readRun>;
export type RunStep = Run["steps"][number];
export type RunGraphData = AnswerOf<typeof readRunGraph>;
export type ResultRecord = AnswerOf<typeof listResultRecords>["items"][number];
export type Overview = AnswerOf<typeof readOverview>;
export type WriteGroup = AnswerOf<typeof listWriteGroups>["items"][number];
export type UncertainWrite = AnswerOf<typeof listWrites>["items"][number];
export type DecidedWrites = AnswerOf<typeof decideWriteGroup>;
export type ListedProposal = AnswerOf<typeof listProposals>["items"][number];
export type Proposal = AnswerOf<typeof readProposal>;
export type Review = AnswerOf<typeof readReview>;
export type ReviewRecord = AnswerOf<typeof listReviewRecords>["items"][number];

/** An error of a record, as far as it has the expected form. */
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

/** A record's data by its keys; a value that is not an object has the key `value`. */
export function fieldsOf(data: unknown): Readonly<Record<string, unknown>> {
  return typeof data === "object" && data !== null && !Array.isArray(data)
    ? (data as Readonly<Record<string, unknown>>)
    : { value: data };
}

/** A value as text: strings unchanged, others as JSON. */
export function textOf(value: unknown): string {
  if (value === undefined) return "";
  return typeof value === "string" ? value : JSON.stringify(value);
}
