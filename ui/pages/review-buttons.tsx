import { Button, Group } from "@mantine/core";
import type { ReviewRecord } from "../parts/answers.ts";
import type { ReviewDrafts } from "./review-drafts.ts";

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
          onClick={() => drafts.undo(record)}
        >
          Undo
        </Button>
      )}
      <Button
        size="compact-sm"
        variant={isOut ? "filled" : "default"}
        aria-label={isOut ? `Include ${name}` : `Exclude ${name}`}
        onClick={() => drafts.exclude(record, !isOut)}
      >
        {isOut ? "Include" : "Exclude"}
      </Button>
    </Group>
  );
}
