import { Anchor } from "@mantine/core";
import { Link } from "wouter";
import { listSecrets, readOverview } from "../api/operations.ts";
import { useRead, useSignedIn } from "../api/queries.ts";
import type { AnswerOf } from "../api/request.ts";
import type { Overview } from "../parts/answers.ts";
import { Mark } from "../parts/run-status.tsx";
import { secretPath } from "./secret-path.ts";

type Problem = AnswerOf<typeof listSecrets>["problems"][number];

/** How the last logins of its credentials went. */
function Logins({
  of: failing,
  lacking,
}: {
  readonly of: Overview["failing_logins"][number] | undefined;
  /** The account secret that it lacks, without which no login works. */
  readonly lacking: Problem | undefined;
}) {
  const { may } = useSignedIn();
  if (lacking)
    return (
      <>
        <Mark tone="bad">Secret missing</Mark>
        <Anchor component={Link} href={secretPath(lacking)} size="sm" display="block" className="any-break">
          {lacking.kind === "missing_secret" && may("secret.manage")
            ? `Set ${lacking.name}`
            : `See ${lacking.name}`}
        </Anchor>
      </>
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
    const lacking = problems.find((each) => isIts(each) && each.kind !== "variable");
    return <Logins of={failing.find(isIts)} lacking={lacking} />;
  };
}
