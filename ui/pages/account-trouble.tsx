import { Stack } from "@mantine/core";
import { listFailures, readOverview } from "../api/operations.ts";
import { useRead } from "../api/queries.ts";
import { Mark } from "../parts/run-status.tsx";

/** How many of its runs failed in the last 24 hours, as the overview counts them, and how many of its credentials are locked at present. */
function useTrouble(name: string) {
  const overview = useRead(readOverview, {}, { live: true }).data;
  const since = overview?.hours[0]?.at;
  const failures = useRead(
    listFailures,
    { query: { since } },
    { live: true, enabled: since !== undefined },
  ).data;
  const own = <T extends { readonly account: string }>(of: readonly T[]): readonly T[] =>
    of.filter(({ account }) => account === name);
  return {
    failed: own(failures?.items ?? []).reduce((sum, { runs }) => sum + runs, 0),
    locked: own(overview?.failing_logins ?? []).reduce((sum, { locked }) => sum + locked, 0),
  };
}

/** The same, in words. */
export function AccountTrouble({ account }: { readonly account: string }) {
  const { failed, locked } = useTrouble(account);
  if (failed === 0 && locked === 0) return <Mark tone="quiet">Nothing failed</Mark>;
  const parts = [
    ...(failed === 0 ? [] : [`${failed} ${failed === 1 ? "run" : "runs"} failed`]),
    ...(locked === 0 ? [] : [`${locked} ${locked === 1 ? "credential" : "credentials"} locked`]),
  ];
  return (
    <Stack gap={0}>
      {parts.map((part) => (
        <Mark key={part} tone="bad">
          {part}
        </Mark>
      ))}
    </Stack>
  );
}
