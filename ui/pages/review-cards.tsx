import { Group, Text } from "@mantine/core";
import { useWindowVirtualizer } from "@tanstack/react-virtual";
import { useEffect, useRef, useState } from "react";
import { useArrival } from "../parts/arrival.ts";
import { FailureNote } from "../parts/failure-note.tsx";
import type { ReviewRecord } from "../parts/answers.ts";
import { ReviewButtons, ReviewCheckbox } from "./review-buttons.tsx";
import { RecordProblems, ReviewField } from "./review-field.tsx";
import type { RecordsView } from "./records-view.ts";
import { useReviewRecords } from "./review-records.ts";
import styles from "./review-record.module.css";

const CARD_PX = 240;
const GAP_PX = 12;

/** One card per record, for phones; only the visible cards are rendered. */
export function ReviewCards(view: RecordsView) {
  const list = useRef<HTMLOListElement>(null);
  const [top, setTop] = useState(0);
  useEffect(() => {
    setTop((list.current?.getBoundingClientRect().top ?? 0) + window.scrollY);
  }, []);
  const cards = useWindowVirtualizer({
    count: view.total,
    estimateSize: () => CARD_PX,
    overscan: 4,
    gap: GAP_PX,
    scrollMargin: top,
  });
  useArrival(list, view.goTo, (index) => cards.scrollToIndex(index, { align: "center" }));
  const seen = cards.getVirtualItems();
  const [first, last] = [seen[0], seen.at(-1)];
  const { recordAt, fields, failure, retry } = useReviewRecords(view, first?.index ?? 0, last?.index ?? 0);
  return (
    <>
      {failure && <FailureNote error={failure} onRetry={retry} />}
      <ol
        ref={list}
        className={styles["cards"]}
        aria-label="Records"
        style={{
          paddingTop: first ? first.start - top : 0,
          paddingBottom: last ? cards.getTotalSize() - (last.end - top) : 0,
        }}
      >
        {seen.map(({ index }) => (
          <li key={index} ref={cards.measureElement} data-index={index}>
            <Card record={recordAt(index)} index={index} fields={fields} view={view} />
          </li>
        ))}
      </ol>
    </>
  );
}

function Card(props: {
  readonly record: ReviewRecord | undefined;
  readonly index: number;
  readonly fields: readonly string[];
  readonly view: RecordsView;
}) {
  const { record, fields } = props;
  const { drafts, mayEdit, mayExclude } = props.view;
  if (record === undefined)
    return (
      <div className={styles["card"]} style={{ height: CARD_PX }}>
        …
      </div>
    );
  return (
    <div
      className={styles["card"]}
      data-out={drafts.isExcluded(record)}
      data-edited={drafts.isEdited(record)}
      data-invalid={!record.is_valid}
    >
      <Group justify="space-between" mb="xs">
        <Group gap="xs">
          <ReviewCheckbox record={record} index={props.index} view={props.view} />
          <Text fw={600} size="sm">
            Record {record.ordinal + 1}
          </Text>
        </Group>
        {mayExclude && <ReviewButtons record={record} drafts={drafts} />}
      </Group>
      <RecordProblems record={record} fields={fields} />
      <div className={styles["pairs"]}>
        {fields.map((field) => (
          <div key={field}>
            <span className={styles["label"]} aria-hidden={mayEdit}>
              {field}
            </span>
            <ReviewField record={record} field={field} drafts={drafts} mayEdit={mayEdit} />
          </div>
        ))}
      </div>
    </div>
  );
}
