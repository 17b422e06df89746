import { Button, NativeSelect, Stack, Text } from "@mantine/core";
import { useState } from "react";
import { listKeys, rotateKey } from "../api/operations.ts";
import { keyOf, useOperation } from "../api/queries.ts";
import { Confirm } from "../parts/confirm.tsx";
import { useNow } from "../parts/now.ts";
import { Time } from "../parts/time.tsx";

const HOUR_SECONDS = 3_600;
/** How long the old key keeps working. */
const OVERLAPS = [
  { value: `${24 * HOUR_SECONDS}`, label: "1 day" },
  { value: `${7 * 24 * HOUR_SECONDS}`, label: "7 days" },
  { value: `${30 * 24 * HOUR_SECONDS}`, label: "30 days" },
  { value: `${HOUR_SECONDS}`, label: "1 hour" },
  { value: "0", label: "Revoke immediately" },
];

/** Asks for confirmation, and says what stops working and when. */
export function RotateButton(props: {
  readonly id: string;
  readonly name: string;
  readonly expiresAt: string | null;
  readonly onMade: (key: string) => void;
}) {
  const { id, name, expiresAt } = props;
  const [isAsking, setIsAsking] = useState(false);
  const [overlap, setOverlap] = useState(OVERLAPS[0]?.value ?? "0");
  const now = useNow();
  const rotating = useOperation(rotateKey, {
    changes: [keyOf(listKeys)],
    onDone: ({ key }) => {
      setIsAsking(false);
      props.onMade(key);
    },
  });
  const overlapMs = Number(overlap) * 1_000;
  // A rotation does not extend an old key that expires sooner.
  const endsAtMs = Math.min(now + overlapMs, expiresAt === null ? Infinity : Date.parse(expiresAt));
  return (
    <>
      <Button size="xs" variant="default" aria-label={`Rotate ${name}`} onClick={() => setIsAsking(true)}>
        Rotate
      </Button>
      <Confirm
        isOpen={isAsking}
        title="Rotate this key?"
        action="Rotate"
        isBusy={rotating.isPending}
        failure={rotating.failure}
        onConfirm={() =>
          rotating.mutate({ params: { keyId: id }, body: { overlap_seconds: Number(overlap) } })
        }
        onClose={() => setIsAsking(false)}
      >
        <Stack gap="md">
          <NativeSelect
            label="Keep the old key working for"
            value={overlap}
            onChange={(event) => setOverlap(event.currentTarget.value)}
            data={OVERLAPS}
          />
          <Text size="sm">
            The new key has the same account, Blueprints and scopes, and is shown once. Callers that still use{" "}
            <b>{name}</b>{" "}
            {overlapMs === 0 ? (
              "are rejected from now on."
            ) : (
              <>
                are rejected after <Time at={new Date(endsAtMs).toISOString()} isExact />.
              </>
            )}{" "}
            It can&apos;t be undone.
          </Text>
        </Stack>
      </Confirm>
    </>
  );
}
