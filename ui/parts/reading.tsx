import { Skeleton, Stack } from "@mantine/core";
import type { UseQueryResult } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { FailureNote } from "./failure-note.tsx";

const ROWS = 4;

/** Shows loaded data; before that, a placeholder or the error. If a reload fails, the data remains, with a note above it. */
export function Reading<T>({
  of,
  children,
}: {
  readonly of: UseQueryResult<T>;
  readonly children: (data: T) => ReactNode;
}) {
  if (of.data === undefined && of.isError)
    return <FailureNote error={of.error} onRetry={() => void of.refetch()} />;
  if (of.data === undefined)
    return (
      <Stack gap="sm" component="output" display="flex" aria-busy="true" aria-label="Loading">
        {Array.from({ length: ROWS }, (_, row) => (
          <Skeleton key={row} height={44} />
        ))}
      </Stack>
    );
  return (
    <>
      {of.isError && <FailureNote error={of.error} onRetry={() => void of.refetch()} />}
      {children(of.data)}
    </>
  );
}
