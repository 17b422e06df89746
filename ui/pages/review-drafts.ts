import { useDraft } from "../api/use-draft.ts";
import { fieldsOf, textOf, type Review, type ReviewRecord } from "../parts/answers.ts";

/** Text entered into a record's fields, by field name. */
type RecordDraft = Readonly<Record<string, string>>;

/** Entered text as a value of the field's previous type, or the reason why it can't be converted. */
export type Typed = { readonly value: unknown } | { readonly problem: string };

function readTyped(before: unknown, text: string): Typed {
  if (before === null || before === undefined) return { value: text === "" ? before : text };
  if (typeof before === "string") return { value: text };
  if (typeof before === "number") {
    const value = Number(text);
    return text.trim() === "" || !Number.isFinite(value) ? { problem: "Enter a number." } : { value };
  }
  if (typeof before === "boolean")
    return text === "true" || text === "false"
      ? { value: text === "true" }
      : { problem: "Enter true or false." };
  try {
    return { value: JSON.parse(text) as unknown };
  } catch {
    return { problem: "Enter valid JSON." };
  }
}

/** The draft of one review, by ordinals. Each edit contains its record, which may no longer be loaded. */
interface ReviewDraft {
  readonly typed: Readonly<Record<number, { readonly record: ReviewRecord; readonly draft: RecordDraft }>>;
  /** Whether the excluded record is valid. */
  readonly excluded: Readonly<Record<number, boolean>>;
}

const NOTHING: ReviewDraft = { typed: {}, excluded: {} };

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
  type(record: ReviewRecord, field: string, text: string): void;
  exclude(record: ReviewRecord, isOut: boolean): void;
  undo(record: ReviewRecord): void;
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
  const before = (record: ReviewRecord, field: string): unknown => fieldsOf(record.data)[field];
  const problemIn = (record: ReviewRecord, field: string): string | null => {
    const text = draftOf(record)[field];
    const read = text === undefined ? null : readTyped(before(record, field), text);
    return read && "problem" in read ? read.problem : null;
  };
  const isExcluded = ({ ordinal }: ReviewRecord): boolean => excluded[ordinal] !== undefined;
  const keptEdits = Object.values(typed)
    .map(({ record }) => record)
    .filter((record) => !isExcluded(record));
  const invalidOut = Object.values(excluded).filter((isValid) => !isValid).length;
  const invalidEdited = keptEdits.filter((record) => !record.is_valid).length;
  return {
    editedCount: keptEdits.length,
    excludedCount: Object.keys(excluded).length,
    errorsLeft: review.records_total - review.records_valid - invalidOut - invalidEdited,
    hasProblem: keptEdits.some((record) =>
      Object.keys(draftOf(record)).some((field) => problemIn(record, field) !== null),
    ),
    textIn: (record, field) => draftOf(record)[field] ?? textOf(before(record, field) ?? ""),
    problemIn,
    isEdited: ({ ordinal }) => typed[ordinal] !== undefined,
    isExcluded,
    type: (record, field, text) => {
      const { [field]: _, ...others } = draftOf(record);
      const isSame = text === textOf(before(record, field) ?? "");
      const next = isSame ? others : { ...others, [field]: text };
      keep({
        excluded,
        typed:
          Object.keys(next).length === 0
            ? without(typed, record.ordinal)
            : { ...typed, [record.ordinal]: { record, draft: next } },
      });
    },
    exclude: ({ ordinal, is_valid: isValid }, isOut) =>
      keep({ typed, excluded: isOut ? { ...excluded, [ordinal]: isValid } : without(excluded, ordinal) }),
    undo: ({ ordinal }) => keep({ excluded, typed: without(typed, ordinal) }),
    edits: () =>
      keptEdits.map((record) => ({ ordinal: record.ordinal, data: applied(record, draftOf(record)) })),
    exclusions: () => Object.keys(excluded).map(Number),
    forget: () => set(undefined),
  };
}

const without = <T>(values: Readonly<Record<number, T>>, ordinal: number): Readonly<Record<number, T>> => {
  const { [ordinal]: _, ...others } = values;
  return others;
};

function applied(record: ReviewRecord, draft: RecordDraft): object {
  const fields = fieldsOf(record.data);
  const changed = Object.entries(draft).flatMap(([name, text]) => {
    const read = readTyped(fields[name], text);
    return "value" in read && read.value !== undefined ? [[name, read.value] as const] : [];
  });
  return { ...fields, ...Object.fromEntries(changed) };
}
