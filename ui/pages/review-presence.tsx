import { useQuery, useQueryClient } from "@tanstack/react-query";
import { Text } from "@mantine/core";
import { useEffect } from "react";
import { noteAtReview } from "../api/operations.ts";
import { keyOf } from "../api/queries.ts";
import { call } from "../api/request.ts";
import { Note } from "../parts/note.tsx";
import { Time } from "../parts/time.tsx";

/** The service forgets who has said nothing for 50 s. */
const AGAIN_MS = 20_000;

/** Who else has the review open, and tells them that this operator has: so that no two people prepare the same changes. */
export function ReviewPresence(props: { readonly reviewId: string; readonly isEditing: boolean }) {
  const others = usePresence(props);
  return (
    <output aria-label="Others at this review">
      {others.length > 0 && (
        <Note tone="waiting" title={others.length === 1 ? "Somebody else is here" : "Others are here"}>
          {others.map(({ operator, is_editing: isEditing, since }) => (
            <Text key={operator} size="sm">
              <b>{operator}</b> {isEditing ? "has unsent changes" : "has this review open"}, here since{" "}
              <Time at={since} />
            </Text>
          ))}
        </Note>
      )}
    </output>
  );
}

function usePresence({ reviewId, isEditing }: { readonly reviewId: string; readonly isEditing: boolean }) {
  const client = useQueryClient();
  const params = { reviewId };
  const queryKey = keyOf(noteAtReview, { params, body: { state: isEditing ? "editing" : "viewing" } });
  const presence = useQuery({
    queryKey,
    queryFn: async ({ signal }) =>
      await call(noteAtReview, { params, body: { state: isEditing ? "editing" : "viewing" } }, signal),
    // Only while the page is visible.
    refetchInterval: AGAIN_MS,
    gcTime: 0,
    retry: false,
    placeholderData: (before) => before,
  });
  useEffect(() => {
    const leave = (): void => {
      const input = { params: { reviewId }, body: { state: "left" } } as const;
      // It is a courtesy: without it, the service forgets this operator a little later.
      call(noteAtReview, input).catch(() => undefined);
    };
    const onHidden = (): void => {
      if (document.visibilityState === "hidden") leave();
      else void client.invalidateQueries({ queryKey: keyOf(noteAtReview) });
    };
    document.addEventListener("visibilitychange", onHidden);
    return () => {
      document.removeEventListener("visibilitychange", onHidden);
      leave();
    };
  }, [client, reviewId]);
  return presence.data?.others ?? [];
}
