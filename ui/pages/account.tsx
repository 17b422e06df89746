import { Stack } from "@mantine/core";
import { useParams } from "wouter";
import { REVIEW_STEP_UP_NAMES } from "#domain/labels/states.ts";
import { readAccount } from "../api/operations.ts";
import { useRead, useSignedIn } from "../api/queries.ts";
import type { AnswerOf } from "../api/request.ts";
import { AccountViews } from "../parts/account-views.tsx";
import { Copyable } from "../parts/copyable.tsx";
import { Facts } from "../parts/facts.tsx";
import { PageHead } from "../parts/page-head.tsx";
import { Reading } from "../parts/reading.tsx";
import { Section } from "../parts/section.tsx";
import { shortId } from "../parts/short-id.ts";
import { formatDuration, Time } from "../parts/time.tsx";
import { AccountForm } from "./account-form.tsx";
import { AccountTrouble } from "./account-trouble.tsx";
import { LatestRuns } from "./latest-runs.tsx";

const RUNS_SHOWN = 5;

type Account = AnswerOf<typeof readAccount>;

export function AccountPage() {
  const { account = "" } = useParams();
  const read = useRead(readAccount, { params: { account } });
  return (
    <>
      <PageHead title={read.data?.name ?? account} about={account}>
        <AccountViews account={account} name={read.data?.name ?? account} />
      </PageHead>
      <Reading of={read}>{(data) => <AccountParts account={data} />}</Reading>
    </>
  );
}

function AccountParts({ account }: { readonly account: Account }) {
  const { may } = useSignedIn();
  return (
    <Stack gap="xl">
      <Section title="About">
        <Facts
          of={[
            ["ID", <Copyable key="id" text={account.id} shown={shortId(account.id)} name="the ID" />],
            ["Created", <Time key="made" at={account.created_at} />],
            ["Changed", <Time key="changed" at={account.updated_at} />],
            ["Last 24 hours", <AccountTrouble key="trouble" account={account.account} />],
          ]}
        />
      </Section>
      <LatestRuns of={{ account: account.account }} limit={RUNS_SHOWN} />
      <Section title="Settings">
        {may("config.apply") ? (
          <AccountForm key={account.updated_at} account={account} />
        ) : (
          <Settings of={account} />
        )}
      </Section>
    </Stack>
  );
}

/** For those who may not change them. */
const Settings = ({ of: account }: { readonly of: Account }) => (
  <Facts
    of={[
      ["Session lifetime", formatDuration(account.session_lifetime_ms)],
      ["Retention", formatDuration(account.retention_ms)],
      [
        "Rate limit per API key",
        account.rate_limit === null
          ? "unlimited"
          : `${account.rate_limit.per_second} requests per second, bursts of ${account.rate_limit.burst}`,
      ],
      ["Allowed return origins", account.allowed_origins.join(", ") || "none yet"],
      ["Origins that may embed the form", account.embed_origins?.join(", ") ?? "the same"],
      ["Concurrency", String(account.concurrency)],
      ["Second factor for reviews", REVIEW_STEP_UP_NAMES[account.review_step_up]],
      ["Changing where credentials go", account.two_person ? "needs two admins" : "needs one operator"],
      ["Brand name", account.branding.name],
      ["Colour", account.branding.accent_color],
      ["Support URL", account.branding.support_url],
      ["Logo", account.branding.logo_url === null ? "none" : "set"],
    ]}
  />
);
