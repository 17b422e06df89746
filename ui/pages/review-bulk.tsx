import { Button, Group, NativeSelect, Text, TextInput } from "@mantine/core";
import { useState, type FormEvent } from "react";
import { fieldsOf } from "../parts/answers.ts";
import { FailureNote } from "../parts/failure-note.tsx";
import type { RecordsView } from "./records-view.ts";
import { SELECTED_MAX } from "./review-selection.ts";
import styles from "./review-record.module.css";

/** Edits the selected records together. Nothing is sent before the approval. */
export function ReviewBulk({ view }: { readonly view: RecordsView }) {
  const { selection, drafts, total } = view;
  const { records } = selection;
  const all = Math.min(total, SELECTED_MAX);
  return (
    <section className={styles["bulk"]} aria-label="Edit many at once" data-empty={records.length === 0}>
      {selection.failure && <FailureNote error={selection.failure} />}
      <Group gap="sm" align="flex-end">
        <Text size="sm" component="output" className={styles["bulkCount"] ?? ""}>
          {records.length > 0 && `${records.length} selected`}
        </Text>
        {records.length < all && (
          <Button
            size="xs"
            variant="default"
            loading={selection.isLoading}
            onClick={() => selection.selectAll()}
          >
            Select {total > SELECTED_MAX ? `the first ${all}` : `all ${all}`}
          </Button>
        )}
        {records.length > 0 && (
          <>
            <Button size="xs" variant="default" onClick={() => selection.clear()}>
              Clear selection
            </Button>
            <Button size="xs" variant="default" onClick={() => drafts.exclude(records, true)}>
              Exclude selected
            </Button>
            {records.some((record) => drafts.isExcluded(record)) && (
              <Button size="xs" variant="default" onClick={() => drafts.exclude(records, false)}>
                Include selected
              </Button>
            )}
            {records.some((record) => drafts.isEdited(record)) && (
              <Button size="xs" variant="default" onClick={() => drafts.undo(records)}>
                Undo selected
              </Button>
            )}
            {view.mayEdit && <SetField view={view} />}
          </>
        )}
      </Group>
    </section>
  );
}

/** One value for a field of all selected records. */
function SetField({ view: { selection, drafts } }: { readonly view: RecordsView }) {
  const { records } = selection;
  const fields = [...new Set(records.flatMap(({ data }) => Object.keys(fieldsOf(data))))];
  const [chosen, setChosen] = useState("");
  const [text, setText] = useState("");
  const field = fields.includes(chosen) ? chosen : (fields[0] ?? "");
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    drafts.type(records, field, text);
  };
  return (
    <form onSubmit={submit}>
      <Group gap="xs" align="flex-end">
        <NativeSelect
          size="xs"
          label="Field"
          data={fields}
          value={field}
          onChange={(event) => setChosen(event.currentTarget.value)}
        />
        <TextInput
          size="xs"
          label="New value"
          value={text}
          onChange={(event) => setText(event.currentTarget.value)}
        />
        <Button size="xs" type="submit">
          Set in {records.length}
        </Button>
      </Group>
    </form>
  );
}
