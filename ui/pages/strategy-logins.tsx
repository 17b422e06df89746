import { Anchor } from "@mantine/core";
import { Link } from "wouter";
import { listSecrets, readOverview } from "../api/operations.ts";
import { useRead, useSignedIn } from "../api/queries.ts";
import type { Overview } from "../parts/answers.ts";
import { Mark } from "../parts/run-status.tsx";

/** How the last logins of its credentials went. */
function Logins({
  of: failing,
  lacks,
}: {
  readonly of: Overview["failing_logins"][number] | undefined;
  /** Whether it lacks an account secret, without which no login works. */
  readonly lacks: boolean;
}) {
  if (lacks)
    return (
      <Anchor component={Link} href="/secrets" size="sm">
        <Mark tone="bad">Secret missing</Mark>
      </Anchor>
    );
  if (failing === undefined) return <Mark tone="quiet">None rejected</Mark>;
  const { account, strategy, credentials, locked } = failing;
  return (
    <Anchor
      component={Link}
      href={`/credentials?${new URLSearchParams({ account, strategy, state: locked > 0 ? "locked" : "rejected" })}`}
      size="sm"
    >
      <Mark tone={locked > 0 ? "bad" : "waiting"}>
        {locked > 0 ? `${locked} locked` : `${credentials} rejected`}
      </Mark>
    </Anchor>
  );
}

/** How the logins of a strategy go. */
export function useStrategyLogins() {
  const { may } = useSignedIn();
  const problems = useRead(listSecrets, { query: {} }, { enabled: may("secret.read") }).data?.problems ?? [];
  const failing = useRead(readOverview, {}, { live: true }).data?.failing_logins ?? [];
  return (strategy: { readonly account: string; readonly id: string }) => {
    const isIts = (each: { readonly account: string; readonly strategy: string }): boolean =>
      each.account === strategy.account && each.strategy === strategy.id;
    const lacks = problems.some((each) => isIts(each) && each.kind !== "variable");
    return <Logins of={failing.find(isIts)} lacks={lacks} />;
  };
}
