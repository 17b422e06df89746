import { Button, NativeSelect, Stack, Text } from "@mantine/core";
import { useState } from "react";
import { listKeys, rotateKey } from "../api/operations.ts";
import { keyOf, useOperation } from "../api/queries.ts";
import { Confirm } from "../parts/confirm.tsx";
import { useNow } from "../parts/now.ts";
import { Time } from "../parts/time.tsx";

const HOUR_SECONDS = 3_600;
/** How long the old key works beside the new one. */
const OVERLAPS = [
  { value: `${24 * HOUR_SECONDS}`, label: "another day" },
  { value: `${7 * 24 * HOUR_SECONDS}`, label: "another week" },
  { value: `${30 * 24 * HOUR_SECONDS}`, label: "another 30 days" },
  { value: `${HOUR_SECONDS}`, label: "another hour" },
  { value: "0", label: "no longer: it ends now" },
];

/** Asks first, and says what stops working and when. */
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
  // An old key that ends by itself sooner does not live longer.
  const endsAtMs = Math.min(now + overlapMs, expiresAt === null ? Infinity : Date.parse(expiresAt));
  return (
    <>
      <Button size="xs" variant="default" aria-label={`Rotate ${name}`} onClick={() => setIsAsking(true)}>
        Rotate
      </Button>
      <Confirm
        isOpen={isAsking}
        title="Make a new key in this one's place?"
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
            label="The old key works"
            value={overlap}
            onChange={(event) => setOverlap(event.currentTarget.value)}
            data={OVERLAPS}
          />
          <Text size="sm">
            The new key is shown once, with the same account, Blueprints and scopes. A caller that still uses{" "}
            <b>{name}</b>{" "}
            {overlapMs === 0 ? (
              "is refused from now on."
            ) : (
              <>
                is refused from <Time at={new Date(endsAtMs).toISOString()} isExact /> on.
              </>
            )}{" "}
            It can&apos;t be undone.
          </Text>
        </Stack>
      </Confirm>
    </>
  );
}
