import { Text } from "@mantine/core";
import { SESSION_STATE_NAMES as names } from "#domain/labels/states.ts";
import { Mark } from "../parts/run-status.tsx";
import { Time } from "../parts/time.tsx";

const TONES: Readonly<Record<string, string>> = { pending: "waiting", completed: "good" };

export function SessionState({
  of: { status, sign_in_failure: failure, sign_in_failed_at: at },
}: {
  readonly of: {
    readonly status: string;
    readonly sign_in_failure: string | null;
    readonly sign_in_failed_at: string | null;
  };
}) {
  const tone = TONES[status] ?? "quiet";
  return (
    <>
      <Mark tone={tone}>{names[status] ?? status}</Mark>
      {failure !== null && at !== null && (
        <Text size="xs" c="dimmed" className="any-break">
          Sign-in failed <Time at={at} />: {failure}
        </Text>
      )}
    </>
  );
}
