import { fieldsOf, textOf, type ReviewRecord } from "../parts/answers.ts";

/** Text entered into a record's fields, by field name. */
export type RecordDraft = Readonly<Record<string, string>>;

/** The draft of one review, by ordinals. Each edit contains its record, which may no longer be loaded. */
export interface ReviewDraft {
  readonly typed: Readonly<Record<number, { readonly record: ReviewRecord; readonly draft: RecordDraft }>>;
  /** Whether the excluded record is valid. */
  readonly excluded: Readonly<Record<number, boolean>>;
}

export const NOTHING: ReviewDraft = { typed: {}, excluded: {} };

/** An edited field of a record. The values as JSON; null: the record does not have the field. */
export interface FieldChange {
  readonly ordinal: number;
  readonly field: string;
  readonly before: string | null;
  readonly after: string | null;
}

/** Entered text as a value of the field's previous type, or the reason why it can't be converted. */
type Typed = { readonly value: unknown } | { readonly problem: string };

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

const before = (record: ReviewRecord, field: string): unknown => fieldsOf(record.data)[field];

/** Why the entered text can't be the field's value; null: it can, or nothing was entered. */
export function problemIn(record: ReviewRecord, field: string, text: string | undefined): string | null {
  const read = text === undefined ? null : readTyped(before(record, field), text);
  return read && "problem" in read ? read.problem : null;
}

/** The same text in a field of each record. A text that the field has anyway is no edit. */
export function typeInto(
  { typed, excluded }: ReviewDraft,
  records: readonly ReviewRecord[],
  field: string,
  text: string,
): ReviewDraft {
  const next = { ...typed };
  for (const record of records) {
    const { [field]: _, ...others } = next[record.ordinal]?.draft ?? {};
    const isSame = text === textOf(before(record, field) ?? "");
    const draft = isSame ? others : { ...others, [field]: text };
    if (Object.keys(draft).length === 0) delete next[record.ordinal];
    else next[record.ordinal] = { record, draft };
  }
  return { typed: next, excluded };
}

export function exclude(
  { typed, excluded }: ReviewDraft,
  records: readonly ReviewRecord[],
  isOut: boolean,
): ReviewDraft {
  const next = { ...excluded };
  for (const { ordinal, is_valid: isValid } of records) {
    if (isOut) next[ordinal] = isValid;
    else delete next[ordinal];
  }
  return { typed, excluded: next };
}

/** Without what was entered into the records. */
export function undo({ typed, excluded }: ReviewDraft, records: readonly ReviewRecord[]): ReviewDraft {
  const next = { ...typed };
  for (const { ordinal } of records) delete next[ordinal];
  return { typed: next, excluded };
}

/** The record's data with the edits. */
export const appliedTo = (record: ReviewRecord, draft: RecordDraft): object => ({
  ...fieldsOf(record.data),
  ...Object.fromEntries(valuesOf(record, draft)),
});

export const changesOf = (record: ReviewRecord, draft: RecordDraft): readonly FieldChange[] =>
  valuesOf(record, draft).map(([field, after]) => ({
    ordinal: record.ordinal,
    field,
    before: Object.hasOwn(fieldsOf(record.data), field) ? JSON.stringify(before(record, field)) : null,
    after: JSON.stringify(after),
  }));

const valuesOf = (record: ReviewRecord, draft: RecordDraft): readonly (readonly [string, unknown])[] =>
  Object.entries(draft).flatMap(([field, text]) => {
    const read = readTyped(before(record, field), text);
    return "value" in read && read.value !== undefined ? [[field, read.value] as const] : [];
  });
