import { Box } from "@mantine/core";
import { useNetwork } from "@mantine/hooks";
import { Note } from "../parts/note.tsx";

/** Shown while the browser is offline. Pages reload their data when it is online again. */
export function ConnectionNote() {
  const { online } = useNetwork();
  return (
    <Box component="output" display="block">
      {!online && (
        <Box mb="md">
          <Note tone="waiting" title="You are offline">
            This page may be out of date, and changes can&apos;t be saved. It updates by itself when the
            connection is back.
          </Note>
        </Box>
      )}
    </Box>
  );
}
