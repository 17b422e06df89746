import { Button, Group } from "@mantine/core";
import type { ReviewRecord } from "../parts/answers.ts";
import type { ReviewDrafts } from "./review-drafts.ts";
import type { RecordsView } from "./records-view.ts";

/** Buttons to exclude or include a record, and to undo edits. */
export function ReviewButtons({
  record,
  drafts,
}: {
  readonly record: ReviewRecord;
  readonly drafts: ReviewDrafts;
}) {
  const isOut = drafts.isExcluded(record);
  const name = `record ${record.ordinal + 1}`;
  return (
    <Group gap={4} justify="flex-end" wrap="nowrap">
      {drafts.isEdited(record) && !isOut && (
        <Button
          size="compact-sm"
          variant="subtle"
          aria-label={`Undo the changes of ${name}`}
          onClick={() => drafts.undo([record])}
        >
          Undo
        </Button>
      )}
      <Button
        size="compact-sm"
        variant={isOut ? "filled" : "default"}
        aria-label={isOut ? `Include ${name}` : `Exclude ${name}`}
        onClick={() => drafts.exclude([record], !isOut)}
      >
        {isOut ? "Include" : "Exclude"}
      </Button>
    </Group>
  );
}

/** Selects a record; with Shift also those between it and the last one. */
export function ReviewCheckbox(props: {
  readonly record: ReviewRecord;
  readonly index: number;
  readonly view: RecordsView;
}) {
  const { record, index, view } = props;
  if (!view.mayExclude) return null;
  return (
    <input
      type="checkbox"
      aria-label={`Select record ${record.ordinal + 1}`}
      checked={view.selection.has(record)}
      onChange={(event) => {
        // A checkbox changes by a click, also if it is the space bar's.
        const { shiftKey } = event.nativeEvent as MouseEvent;
        view.selection.toggle(record, index, shiftKey);
      }}
    />
  );
}
