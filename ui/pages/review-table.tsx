import { ReviewButtons } from "./review-buttons.tsx";
import { RecordProblems, ReviewField, type RecordView } from "./review-field.tsx";
import styles from "./review-record.module.css";

/** A row a record, for wide screens. Tab goes from value to value. */
export function ReviewTable({ records, fields, drafts, mayEdit, mayExclude }: RecordView) {
  return (
    // Scrolled by keyboard, too.
    <section className={styles["box"]} aria-label="Records" tabIndex={0}>
      <table className={styles["table"]}>
        <thead>
          <tr>
            <th scope="col">#</th>
            {fields.map((field) => (
              <th key={field} scope="col">
                {field}
              </th>
            ))}
            {mayExclude && <th scope="col">Actions</th>}
          </tr>
        </thead>
        <tbody>
          {records.map((record) => (
            <tr
              key={record.ordinal}
              data-out={drafts.excluded.has(record.ordinal)}
              data-edited={drafts.isEdited(record)}
              data-invalid={!record.is_valid}
            >
              <th scope="row">
                {record.ordinal + 1}
                <RecordProblems record={record} fields={fields} />
              </th>
              {fields.map((field) => (
                <td key={field}>
                  <ReviewField record={record} field={field} drafts={drafts} mayEdit={mayEdit} />
                </td>
              ))}
              {mayExclude && (
                <td>
                  <ReviewButtons record={record} drafts={drafts} />
                </td>
              )}
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}
