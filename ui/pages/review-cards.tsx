import { Group, Text } from "@mantine/core";
import { ReviewButtons } from "./review-buttons.tsx";
import { RecordProblems, ReviewField, type RecordView } from "./review-field.tsx";
import styles from "./review-record.module.css";

/** A card a record, for phones. */
export function ReviewCards({ records, fields, drafts, mayEdit, mayExclude }: RecordView) {
  return (
    <ol className={styles["cards"]} aria-label="Records">
      {records.map((record) => (
        <li
          key={record.ordinal}
          className={styles["card"]}
          data-out={drafts.excluded.has(record.ordinal)}
          data-edited={drafts.isEdited(record)}
          data-invalid={!record.is_valid}
        >
          <Group justify="space-between" mb="xs">
            <Text fw={600} size="sm">
              Record {record.ordinal + 1}
            </Text>
            {mayExclude && <ReviewButtons record={record} drafts={drafts} />}
          </Group>
          <RecordProblems record={record} fields={fields} />
          {fields.map((field) => (
            <div key={field} className={styles["pair"]}>
              <span className={styles["label"]} aria-hidden={mayEdit}>
                {field}
              </span>
              <ReviewField record={record} field={field} drafts={drafts} mayEdit={mayEdit} />
            </div>
          ))}
        </li>
      ))}
    </ol>
  );
}
