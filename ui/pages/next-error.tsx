import { Button, Group, Text } from "@mantine/core";
import { useState } from "react";
import { FailureNote } from "../parts/failure-note.tsx";
import { usePageKey } from "../parts/page-key.ts";
import { PAGE_RECORDS } from "../parts/paged-records.ts";
import { listReviewRecords } from "../api/operations.ts";
import { call } from "../api/request.ts";
import type { RecordsView } from "./records-view.ts";

const KEY = "F8";

/** The place of the record that has the focus. */
function focusedIndex(): number | null {
  const place = document.activeElement?.closest<HTMLElement>("[data-index]")?.dataset["index"];
  return place === undefined ? null : Number(place);
}

/** Goes to the next record with errors, by a button and by F8: in text fields, letters are typed. */
export function NextError(props: {
  readonly view: RecordsView;
  /** It has no such key. */
  readonly isPhone: boolean;
  readonly onFound: (place: { readonly index: number }) => void;
}) {
  const { view, isPhone, onFound } = props;
  const [failure, setFailure] = useState<Error | null>(null);
  const { errorsLeft } = view.drafts;
  const go = async (): Promise<void> => {
    setFailure(null);
    try {
      const index = await findNextError(view, focusedIndex() ?? view.goTo?.index ?? -1);
      if (index !== null) onFound({ index });
    } catch (error) {
      setFailure(error instanceof Error ? error : new Error(String(error)));
    }
  };
  usePageKey(
    ({ key, ctrlKey, altKey, metaKey }) => key === KEY && !ctrlKey && !altKey && !metaKey,
    () => void go(),
  );
  return (
    <>
      {failure && <FailureNote error={failure} />}
      <Group gap="xs">
        <Text size="sm" c="dimmed">
          {errorsLeft === 0 ? "No errors left" : `${errorsLeft} with errors left`}
        </Text>
        <Button
          size="xs"
          variant="default"
          aria-keyshortcuts={KEY}
          disabled={errorsLeft === 0}
          onClick={() => void go()}
        >
          Next error{isPhone ? "" : ` (${KEY})`}
        </Button>
      </Group>
    </>
  );
}

/**
 * The place of the next record with errors after `index`, or before it if there is none; null: none is left. Records that are
 * edited or excluded are passed over. Throws ApiFailure.
 */
async function findNextError(view: RecordsView, index: number): Promise<number | null> {
  return (await findError(view, index + 1, view.total)) ?? (await findError(view, 0, index + 1));
}

async function findError(view: RecordsView, first: number, end: number): Promise<number | null> {
  const { reviewId, onlyInvalid, drafts } = view;
  for (let from = first; from < end;) {
    // Among all records, a record's place is its ordinal.
    const range = onlyInvalid ? { from } : from === 0 ? {} : { after: from - 1 };
    const { items } = await call(listReviewRecords, {
      params: { reviewId },
      query: { valid: false, limit: PAGE_RECORDS, ...range },
    });
    const at = items.findIndex((record) => !drafts.isEdited(record) && !drafts.isExcluded(record));
    const placeOf = (each: number): number => (onlyInvalid ? from + each : (items[each]?.ordinal ?? end));
    if (at !== -1) return placeOf(at) < end ? placeOf(at) : null;
    if (items.length < PAGE_RECORDS) return null;
    from = placeOf(items.length - 1) + 1;
  }
  return null;
}
