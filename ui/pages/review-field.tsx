import { useId } from "react";
import { fieldsOf, problemsOf, textOf, type ReviewRecord } from "../parts/answers.ts";
import type { ReviewDrafts } from "./review-drafts.ts";
import styles from "./review-record.module.css";

/** A value with its errors; editable if the review allows it. */
export function ReviewField(props: {
  readonly record: ReviewRecord;
  readonly field: string;
  readonly drafts: ReviewDrafts;
  readonly mayEdit: boolean;
}) {
  const { record, field, drafts } = props;
  const id = useId();
  const isOut = drafts.isExcluded(record);
  const typing = drafts.problemIn(record, field);
  const problems = [
    ...(typing === null ? [] : [typing]),
    ...problemsOf(record.errors).flatMap((each) => (each.field === field ? [each.message] : [])),
  ];
  return (
    <>
      {props.mayEdit ? (
        <input
          className={styles["input"]}
          aria-label={`${field} of record ${record.ordinal + 1}`}
          aria-invalid={problems.length > 0}
          aria-describedby={problems.length > 0 ? id : undefined}
          disabled={isOut}
          value={drafts.textIn(record, field)}
          onChange={(event) => drafts.type([record], field, event.currentTarget.value)}
        />
      ) : (
        <span className={styles["value"]}>{textOf(fieldsOf(record.data)[field])}</span>
      )}
      {problems.length > 0 && (
        <span id={id} className={styles["problem"]}>
          {problems.join(" ")}
        </span>
      )}
    </>
  );
}

/** Errors of a record as a whole, or of fields that it does not have. */
export function RecordProblems({
  record,
  fields,
}: {
  readonly record: ReviewRecord;
  readonly fields: readonly string[];
}) {
  const others = problemsOf(record.errors).filter(({ field }) => field === null || !fields.includes(field));
  return others.length === 0 ? null : (
    <span className={styles["problem"]}>
      {others.map(({ field, message }) => (field === null ? message : `${field}: ${message}`)).join(" ")}
    </span>
  );
}
