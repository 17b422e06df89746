import { readOverview } from "../api/operations.ts";
import { useRead } from "../api/queries.ts";
import type { Overview } from "../parts/answers.ts";
import { Mark } from "../parts/run-status.tsx";

/** How many of its runs failed in the last 24 hours, and how many of its credentials are locked at present. */
function troubleOf(overview: Overview | undefined, name: string) {
  const own = <T extends { readonly account: string }>(of: readonly T[]): readonly T[] =>
    of.filter(({ account }) => account === name);
  return {
    failed: own(overview?.failures ?? []).reduce((sum, { runs }) => sum + runs, 0),
    locked: own(overview?.failing_logins ?? []).reduce((sum, { locked }) => sum + locked, 0),
  };
}

/** The same, in words. */
export function AccountTrouble({ account }: { readonly account: string }) {
  const overview = useRead(readOverview, {}, { live: true });
  const { failed, locked } = troubleOf(overview.data, account);
  if (failed === 0 && locked === 0) return <Mark tone="quiet">Nothing failed</Mark>;
  const parts = [
    ...(failed === 0 ? [] : [`${failed} ${failed === 1 ? "run" : "runs"} failed`]),
    ...(locked === 0 ? [] : [`${locked} ${locked === 1 ? "credential" : "credentials"} locked`]),
  ];
  return <Mark tone="bad">{parts.join(", ")}</Mark>;
}
