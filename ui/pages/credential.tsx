import { Anchor, Group, Stack, Text } from "@mantine/core";
import { Link, useLocation, useParams } from "wouter";
import { CREDENTIAL_STATE_NAMES } from "#domain/labels/states.ts";
import { readCredential } from "../api/operations.ts";
import { useRead, useSignedIn } from "../api/queries.ts";
import type { AnswerOf } from "../api/request.ts";
import { Copyable } from "../parts/copyable.tsx";
import { DataTable } from "../parts/data-table.tsx";
import { EmptyState } from "../parts/empty-state.tsx";
import { Facts } from "../parts/facts.tsx";
import { LinkIf } from "../parts/link-if.tsx";
import { MetadataChips } from "../parts/metadata-chips.tsx";
import { Note } from "../parts/note.tsx";
import { PageHead } from "../parts/page-head.tsx";
import { Reading } from "../parts/reading.tsx";
import { Mark } from "../parts/run-status.tsx";
import { Section } from "../parts/section.tsx";
import { shortId } from "../parts/short-id.ts";
import { Time } from "../parts/time.tsx";
import {
  CredentialActions,
  CredentialState,
  DeleteCredential,
  NewLinkButton,
  WaysOut,
} from "./credential-parts.tsx";
import { LatestRuns } from "./latest-runs.tsx";

type Credential = AnswerOf<typeof readCredential>;

/** Runs shown below it. */
const SHOWN = 10;

export function CredentialPage() {
  const { credentialId = "" } = useParams();
  const credential = useRead(readCredential, { params: { credentialId } }, { live: true });
  const { data } = credential;
  return (
    <>
      <PageHead
        title={data ? (data.name ?? "Credential without a label") : "Credential"}
        about={
          data && (
            <Group gap="xs" align="flex-start">
              {/* Announced when it changes. */}
              <output>
                {data.locked_until === null ? (
                  <CredentialState of={data} />
                ) : (
                  // The note says the rest.
                  <Mark tone="bad">{CREDENTIAL_STATE_NAMES.locked}</Mark>
                )}
              </output>
              {data.customer !== null && <MetadataChips of={{ customer: data.customer }} />}
            </Group>
          )
        }
      >
        {data && data.locked_until === null && (
          <>
            {data.login_rejections > 0 && <NewLinkButton of={data} />}
            <CredentialActions of={data} />
          </>
        )}
      </PageHead>
      <Reading of={credential}>{(read) => <CredentialSections of={read} />}</Reading>
    </>
  );
}

function CredentialSections({ of: credential }: { readonly of: Credential }) {
  const [, go] = useLocation();
  return (
    <Stack gap="xl">
      <LockNote of={credential} />
      <Section title="Health">
        <Health of={credential} />
      </Section>
      <Section title="Used by" isBare>
        <Uses of={credential} />
      </Section>
      <LatestRuns of={{ credential: credential.id }} limit={SHOWN} />
      <Section
        title="About"
        actions={<DeleteCredential of={credential} onDeleted={() => go("/credentials")} />}
      >
        <About of={credential} />
      </Section>
    </Stack>
  );
}

/** Why it is locked, and what to do, in this order. */
function LockNote({ of: credential }: { readonly of: Credential }) {
  const { locked_until: until, login_rejections: count } = credential;
  if (until === null) return null;
  return (
    <Note tone="bad" title="This credential is locked">
      The target rejected its last {count === 1 ? "login" : `${count} logins`}. More attempts could lock the
      user out there, so no run logs in with it; it unlocks <Time at={until} />.
      <WaysOut of={credential} />
    </Note>
  );
}

const sum = (of: Credential["uses"], name: "runs" | "completed" | "failed" | "login_failed"): number =>
  of.reduce((total, use) => total + use[name], 0);

function Health({
  of: { uses, login_rejections: rejections, session_until: until },
}: {
  readonly of: Credential;
}) {
  const runs = sum(uses, "runs");
  const last = uses[0];
  return (
    <Facts
      of={[
        [
          "Last used",
          last === undefined ? (
            "never"
          ) : (
            <Anchor key="last" component={Link} href={`/runs/${last.last_run_id}`} size="sm">
              <Time at={last.last_run_at} />
            </Anchor>
          ),
        ],
        ["Completed", `${sum(uses, "completed")} of ${runs === 1 ? "1 run" : `the last ${runs} runs`}`],
        ["Failed at the login", String(sum(uses, "login_failed"))],
        ["Rejected logins in a row", String(rejections)],
        [
          "Kept login",
          until === null ? null : (
            <span key="cached">
              expires <Time at={until} />
            </span>
          ),
        ],
      ]}
    />
  );
}

function Uses({ of: { account, uses } }: { readonly of: Credential }) {
  const { may } = useSignedIn();
  if (uses.length === 0)
    return <EmptyState title="Not used yet">No run has logged in with this credential.</EmptyState>;
  return (
    <DataTable
      name="Used by"
      isNumeric
      rows={uses}
      keyOf={({ blueprint }) => blueprint ?? ""}
      columns={[
        {
          title: "Blueprint",
          cell: ({ blueprint }) =>
            blueprint === null ? (
              "Test logins"
            ) : (
              <LinkIf to={may("config.read") && `/blueprints/${account}/${blueprint}`}>{blueprint}</LinkIf>
            ),
        },
        { title: "Runs", cell: ({ runs }) => runs },
        { title: "Completed", from: "xs", cell: ({ completed }) => completed },
        { title: "Failed", cell: ({ failed }) => failed },
        { title: "Failed at the login", from: "sm", cell: ({ login_failed: failed }) => failed },
        {
          title: "Last run",
          cell: ({ last_run_id: id, last_run_at: at }) => (
            <Anchor component={Link} href={`/runs/${id}`} size="sm">
              <Time at={at} isShort />
            </Anchor>
          ),
        },
      ]}
    />
  );
}

function About({ of: credential }: { readonly of: Credential }) {
  const { may } = useSignedIn();
  const { account, strategy } = credential;
  return (
    <Facts
      of={[
        ["ID", <Copyable key="id" text={credential.id} shown={shortId(credential.id)} name="the ID" />],
        [
          "Strategy",
          <LinkIf key="strategy" to={may("config.read") && `/strategies/${account}/${strategy}`}>
            {strategy}
          </LinkIf>,
        ],
        [
          "Account",
          <LinkIf key="account" to={may("config.read") && `/accounts/${account}`}>
            {account}
          </LinkIf>,
        ],
        ["Created", <Time key="created" at={credential.created_at} />],
        [
          "Session",
          <Anchor key="session" component={Link} href={`/sessions/${credential.session_id}`} size="sm">
            {shortId(credential.session_id)}
          </Anchor>,
        ],
        [
          "Allowed hosts",
          <Group key="origins" gap={4}>
            {credential.origins.length === 0
              ? "none"
              : credential.origins.map((origin) => (
                  <Text key={origin} size="sm" component="span" className="any-break">
                    {origin}
                  </Text>
                ))}
          </Group>,
        ],
      ]}
    />
  );
}
