import { fieldsOf, type ReviewRecord } from "../parts/answers.ts";
import { useArrival } from "../parts/arrival.ts";
import { FailureNote } from "../parts/failure-note.tsx";
import { RowGap } from "../parts/row-gap.tsx";
import { useVisibleRows } from "../parts/visible-rows.ts";
import { ReviewButtons, ReviewCheckbox } from "./review-buttons.tsx";
import { RecordProblems, ReviewField } from "./review-field.tsx";
import type { RecordsView } from "./records-view.ts";
import { useReviewRecords } from "./review-records.ts";
import styles from "./review-record.module.css";

const ROW_PX = 51;

/** One row per record, for wide screens; only the visible rows are rendered. Tab moves from value to value. */
export function ReviewTable(view: RecordsView) {
  const { total, drafts, mayExclude } = view;
  const { box, visible, firstIndex, lastIndex, above, below, measure, scrollTo } = useVisibleRows(
    total,
    ROW_PX,
  );
  useArrival(box.ref, view.goTo, scrollTo);
  const { recordAt, fields, failure, retry } = useReviewRecords(view, firstIndex, lastIndex);
  const columns = fields.length + (mayExclude ? 2 : 1);
  const numbers = numbersAmong(
    fields,
    visible.flatMap(({ index }) => recordAt(index) ?? []),
  );
  return (
    <>
      {failure && <FailureNote error={failure} onRetry={retry} />}
      {/* Can also be scrolled by keyboard. */}
      <section {...box} className={styles["box"]} aria-label="Records" tabIndex={0}>
        <table className={styles["table"]} aria-rowcount={total + 1}>
          <thead>
            <tr aria-rowindex={1}>
              <th scope="col">#</th>
              {fields.map((field) => (
                <th key={field} scope="col" data-number={numbers.has(field)}>
                  {field}
                </th>
              ))}
              {mayExclude && <th scope="col">Actions</th>}
            </tr>
          </thead>
          <tbody>
            <RowGap columns={columns} px={above} />
            {visible.map(({ index }) => {
              const record = recordAt(index);
              return (
                <tr
                  key={index}
                  ref={measure}
                  data-index={index}
                  aria-rowindex={index + 2}
                  data-out={record !== undefined && drafts.isExcluded(record)}
                  data-edited={record !== undefined && drafts.isEdited(record)}
                  data-invalid={record?.is_valid === false}
                >
                  {record === undefined ? (
                    <td colSpan={columns} style={{ height: ROW_PX }}>
                      …
                    </td>
                  ) : (
                    <Cells record={record} index={index} fields={fields} numbers={numbers} view={view} />
                  )}
                </tr>
              );
            })}
            <RowGap columns={columns} px={below} />
          </tbody>
        </table>
      </section>
    </>
  );
}

function Cells(props: {
  readonly record: ReviewRecord;
  readonly index: number;
  readonly fields: readonly string[];
  readonly numbers: ReadonlySet<string>;
  readonly view: RecordsView;
}) {
  const { record, fields, numbers } = props;
  const { drafts, mayEdit, mayExclude } = props.view;
  return (
    <>
      <th scope="row">
        <span className="no-wrap">
          <ReviewCheckbox {...props} /> {record.ordinal + 1}
        </span>
        <RecordProblems record={record} fields={fields} />
      </th>
      {fields.map((field) => (
        <td key={field} data-number={numbers.has(field)}>
          <ReviewField record={record} field={field} drafts={drafts} mayEdit={mayEdit} />
        </td>
      ))}
      {mayExclude && (
        <td>
          <ReviewButtons record={record} drafts={drafts} />
        </td>
      )}
    </>
  );
}

/** Fields that are numbers in every record that has them. */
function numbersAmong(fields: readonly string[], records: readonly ReviewRecord[]): ReadonlySet<string> {
  return new Set(
    fields.filter((field) => {
      const values = records.map(({ data }) => fieldsOf(data)[field]).filter((value) => value !== undefined);
      return values.length > 0 && values.every((value) => typeof value === "number");
    }),
  );
}
