import { Alert, Button, Text } from "@mantine/core";
import { explainFailure } from "../api/failure.ts";

/** What went wrong and what to do now, where it went wrong. */
export function FailureNote({ error, onRetry }: { readonly error: unknown; readonly onRetry?: () => void }) {
  const { title, message } = explainFailure(error);
  return (
    <Alert color="red" title={title} role="alert" variant="light">
      <Text size="sm">{message}</Text>
      {onRetry && (
        <Button variant="default" size="xs" mt="sm" onClick={onRetry}>
          Try again
        </Button>
      )}
    </Alert>
  );
}
