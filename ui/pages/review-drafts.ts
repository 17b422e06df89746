import { useEffect } from "react";
import { forgetKept, listKept, useKept } from "../api/queries.ts";
import { fieldsOf, textOf, type Review, type ReviewRecord } from "../parts/answers.ts";

/** What somebody has typed into a record's fields, by their names. */
type RecordDraft = Readonly<Record<string, string>>;

/** What was typed, as a value of the kind that stood there; or why it is none. */
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

/** Of one review. Each with its record: it may be on a page that is not loaded any more. */
interface Kept {
  readonly typed: ReadonlyMap<number, { readonly record: ReviewRecord; readonly draft: RecordDraft }>;
  readonly excluded: ReadonlySet<number>;
}

const KEY = "review";
const NOTHING: Kept = { typed: new Map(), excluded: new Set() };

/** Changes that are not decided yet. They live in the tab alone: nothing is changed before somebody approves. */
export interface Drafts {
  readonly excluded: ReadonlySet<number>;
  readonly editedCount: number;
  readonly hasProblem: boolean;
  textIn(record: ReviewRecord, field: string): string;
  problemIn(record: ReviewRecord, field: string): string | null;
  isEdited(record: ReviewRecord): boolean;
  type(record: ReviewRecord, field: string, text: string): void;
  exclude(record: ReviewRecord, isOut: boolean): void;
  undo(record: ReviewRecord): void;
  /** As an approval sends them. A record that is left out is not edited besides. */
  edits(): { ordinal: number; data: object }[];
}

export function useDrafts({ id, status }: Pick<Review, "id" | "status">): Drafts {
  const [{ typed, excluded }, keep] = useKept<Kept>([KEY, id], NOTHING);
  // It is decided, no matter by whom: there is nothing left to send.
  useEffect(() => {
    if (status !== "open") forgetKept([KEY, id]);
  }, [id, status]);
  const draftOf = ({ ordinal }: ReviewRecord): RecordDraft => typed.get(ordinal)?.draft ?? {};
  const before = (record: ReviewRecord, field: string): unknown => fieldsOf(record.data)[field];
  const problemIn = (record: ReviewRecord, field: string): string | null => {
    const text = draftOf(record)[field];
    const read = text === undefined ? null : readTyped(before(record, field), text);
    return read && "problem" in read ? read.problem : null;
  };
  const isEdited = (record: ReviewRecord): boolean => Object.keys(draftOf(record)).length > 0;
  const edited = [...typed.values()].map(({ record }) => record).filter(isEdited);
  const kept = edited.filter(({ ordinal }) => !excluded.has(ordinal));
  return {
    excluded,
    editedCount: kept.length,
    hasProblem: kept.some((record) =>
      Object.keys(draftOf(record)).some((field) => problemIn(record, field) !== null),
    ),
    textIn: (record, field) => draftOf(record)[field] ?? textOf(before(record, field) ?? ""),
    problemIn,
    isEdited,
    type: (record, field, text) => {
      const { [field]: _, ...others } = draftOf(record);
      const isSame = text === textOf(before(record, field) ?? "");
      const draft = isSame ? others : { ...others, [field]: text };
      keep({ excluded, typed: new Map(typed).set(record.ordinal, { record, draft }) });
    },
    exclude: (record, isOut) => {
      const next = new Set(excluded);
      if (isOut) next.add(record.ordinal);
      else next.delete(record.ordinal);
      keep({ typed, excluded: next });
    },
    undo: ({ ordinal }) =>
      keep({ excluded, typed: new Map([...typed].filter(([each]) => each !== ordinal)) }),
    edits: () => kept.map((record) => ({ ordinal: record.ordinal, data: applied(record, draftOf(record)) })),
  };
}

const isSomething = ({ typed, excluded }: Kept): boolean =>
  excluded.size > 0 || [...typed.values()].some(({ draft }) => Object.keys(draft).length > 0);

function warn(event: BeforeUnloadEvent): void {
  if (listKept<Kept>([KEY]).some(isSomething)) event.preventDefault();
}

/** What was typed is in this tab alone, whatever page it shows: once there was a review, closing it is asked about. */
export function useWarnBeforeClosing(): void {
  useEffect(() => window.addEventListener("beforeunload", warn), []);
}

function applied(record: ReviewRecord, draft: RecordDraft): object {
  const fields = fieldsOf(record.data);
  const changed = Object.entries(draft).flatMap(([name, text]) => {
    const read = readTyped(fields[name], text);
    return "value" in read && read.value !== undefined ? [[name, read.value] as const] : [];
  });
  return { ...fields, ...Object.fromEntries(changed) };
}
