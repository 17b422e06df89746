import { Button } from "@mantine/core";
import { explainFailure } from "../api/failure.ts";
import { Note } from "./note.tsx";

/** An error and its remedy, shown where the error occurred. */
export function FailureNote({ error, onRetry }: { readonly error: unknown; readonly onRetry?: () => void }) {
  const { title, message } = explainFailure(error);
  return (
    <Note tone="bad" title={title} isAlert>
      {message}
      {onRetry && (
        <Button variant="default" size="xs" mt="xs" display="block" onClick={onRetry}>
          Try again
        </Button>
      )}
    </Note>
  );
}
