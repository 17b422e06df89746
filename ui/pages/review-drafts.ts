import { useDraft } from "../api/use-draft.ts";
import { fieldsOf, textOf, type Review, type ReviewRecord } from "../parts/answers.ts";
import {
  appliedTo,
  changesOf,
  exclude,
  NOTHING,
  problemIn,
  typeInto,
  undo,
  type FieldChange,
  type RecordDraft,
  type ReviewDraft,
} from "./review-draft.ts";

/** Unsent changes: nothing is changed before the review is approved. */
export interface ReviewDrafts {
  readonly editedCount: number;
  readonly excludedCount: number;
  /** Records with errors that are neither edited nor excluded. */
  readonly errorsLeft: number;
  readonly hasProblem: boolean;
  textIn(record: ReviewRecord, field: string): string;
  problemIn(record: ReviewRecord, field: string): string | null;
  isEdited(record: ReviewRecord): boolean;
  isExcluded(record: ReviewRecord): boolean;
  /** Enters the same text into a field of each record. */
  type(records: readonly ReviewRecord[], field: string, text: string): void;
  exclude(records: readonly ReviewRecord[], isOut: boolean): void;
  undo(records: readonly ReviewRecord[]): void;
  /** What differs from the records as they are, by record; without excluded records. */
  changes(): readonly FieldChange[];
  /** The edits as sent with an approval, without those of excluded records. */
  edits(): { ordinal: number; data: object }[];
  exclusions(): number[];
  /** They were sent or discarded. */
  forget(): void;
}

export function useReviewDrafts(
  review: Pick<Review, "id" | "records_total" | "records_valid">,
): ReviewDrafts {
  const [draft = NOTHING, set] = useDraft<ReviewDraft>("review", review.id);
  const { typed, excluded } = draft;
  const keep = (next: ReviewDraft): void =>
    set(Object.keys(next.typed).length + Object.keys(next.excluded).length === 0 ? undefined : next);
  const draftOf = ({ ordinal }: ReviewRecord): RecordDraft => typed[ordinal]?.draft ?? {};
  const isExcluded = ({ ordinal }: ReviewRecord): boolean => excluded[ordinal] !== undefined;
  const keptEdits = Object.values(typed).filter(({ record }) => !isExcluded(record));
  const invalidOut = Object.values(excluded).filter((isValid) => !isValid).length;
  const invalidEdited = keptEdits.filter(({ record }) => !record.is_valid).length;
  return {
    editedCount: keptEdits.length,
    excludedCount: Object.keys(excluded).length,
    errorsLeft: review.records_total - review.records_valid - invalidOut - invalidEdited,
    hasProblem: keptEdits.some(({ record, draft: texts }) =>
      Object.entries(texts).some(([field, text]) => problemIn(record, field, text) !== null),
    ),
    textIn: (record, field) => draftOf(record)[field] ?? textOf(fieldsOf(record.data)[field] ?? ""),
    problemIn: (record, field) => problemIn(record, field, draftOf(record)[field]),
    isEdited: ({ ordinal }) => typed[ordinal] !== undefined,
    isExcluded,
    type: (records, field, text) => keep(typeInto(draft, records, field, text)),
    exclude: (records, isOut) => keep(exclude(draft, records, isOut)),
    undo: (records) => keep(undo(draft, records)),
    changes: () => keptEdits.flatMap(({ record, draft: texts }) => changesOf(record, texts)),
    edits: () =>
      keptEdits.map(({ record, draft: texts }) => ({
        ordinal: record.ordinal,
        data: appliedTo(record, texts),
      })),
    exclusions: () => Object.keys(excluded).map(Number),
    forget: () => set(undefined),
  };
}
