import type { Json, JsonObject } from "./json.ts";
import { limits } from "./limits.ts";

/** The settings of a review node. */
export interface ReviewQuestion {
  readonly title: string;
  readonly instructions: string | null;
  /** Whether records may be edited; they may always be excluded. */
  readonly editable: boolean;
  /** Null: it waits without a limit. */
  readonly timeoutMs: number | null;
  readonly onTimeout: "fail" | "approve";
}

export type ReviewStatus = "open" | "approved" | "rejected" | "timed_out" | "closed";

/** A record's new data, by its position in the review. */
export interface RecordEdit {
  readonly ordinal: number;
  readonly data: JsonObject;
}

/** A reviewer's changes. Each has its source for messages: `edits.ndjson:3`. */
export interface WantedChanges {
  readonly edits: readonly { readonly at: string; readonly ordinal: Json; readonly data: Json }[];
  readonly exclusions: readonly { readonly at: string; readonly ordinal: number }[];
}

export type ReadChanges =
  | {
      readonly ok: true;
      readonly edits: readonly RecordEdit[];
      readonly excluded: readonly number[];
    }
  | { readonly ok: false; readonly problems: readonly string[] };

const PROBLEMS_MAX = 100;

/** Checks the changes against their review: all are accepted, or none and every mistake is listed. */
export function readChanges(
  wanted: WantedChanges,
  review: { readonly recordsTotal: number; readonly editable: boolean },
): ReadChanges {
  const problems: string[] = [];
  const edits: RecordEdit[] = [];
  const taken = new Map<number, string>();
  const take = (at: string, ordinal: Json): ordinal is number => {
    const problem = explainPlace(ordinal, review.recordsTotal);
    if (problem !== null) problems.push(`${at}: ${problem}`);
    const number = Number(ordinal);
    const before = problem === null ? taken.get(number) : undefined;
    if (before !== undefined) problems.push(`${at}: record ${number} is already changed at ${before}`);
    if (problem !== null || before !== undefined) return false;
    taken.set(number, at);
    return true;
  };
  if (wanted.edits.length > 0 && !review.editable) {
    const [first] = wanted.edits;
    problems.push(
      `${first?.at ?? ""}: this review allows no edits (\`editable\` is not true); exclude records, or reject`,
    );
  } else {
    for (const { at, ordinal, data } of wanted.edits) {
      const problem = explainData(data);
      if (problem !== null) problems.push(`${at}: ${problem}`);
      if (take(at, ordinal) && problem === null) edits.push({ ordinal, data: data as JsonObject });
    }
  }
  const excluded = wanted.exclusions.flatMap(({ at, ordinal }) => (take(at, ordinal) ? [ordinal] : []));
  if (taken.size > limits.reviewChangesMax) {
    problems.push(
      `${taken.size} records are changed, but the maximum is ${limits.reviewChangesMax}. Change the Blueprint or its source instead`,
    );
  }
  if (problems.length === 0) return { ok: true, edits, excluded };
  const more = problems.length - PROBLEMS_MAX;
  return {
    ok: false,
    problems: more > 0 ? [...problems.slice(0, PROBLEMS_MAX), `… and ${more} more`] : problems,
  };
}

function explainPlace(ordinal: Json, total: number): string | null {
  if (typeof ordinal !== "number" || !Number.isSafeInteger(ordinal) || ordinal < 0)
    return "`ordinal` must be a whole number, from 0";
  if (ordinal < total) return null;
  return total === 0
    ? `there is no record ${ordinal}; the review has none`
    : `there is no record ${ordinal}; the review has 0 to ${total - 1}`;
}

function explainData(data: Json): string | null {
  if (typeof data !== "object" || data === null || Array.isArray(data))
    return "`data` must be an object: the record's data as a whole";
  return isDeeperThan(data, limits.dataDepthMax)
    ? `\`data\` is nested deeper than ${limits.dataDepthMax} levels`
    : null;
}

/** Not recursive: untrusted data may be deeper than the stack allows. */
function isDeeperThan(json: Json, levels: number): boolean {
  let layer: readonly Json[] = [json];
  for (let depth = 0; layer.length > 0; depth++) {
    if (depth > levels) return true;
    layer = layer
      .flatMap((value) =>
        typeof value === "object" && value !== null ? (Object.values(value) as Json[]) : [],
      )
      .filter((value) => typeof value === "object" && value !== null);
  }
  return false;
}
