import { Anchor, Group, Text } from "@mantine/core";
import { Link, useLocation } from "wouter";
import { CREDENTIAL_STATE_NAMES as names, rejectedName } from "#domain/labels/states.ts";
import { deleteCredential, listCredentials, unlockCredential } from "../api/operations.ts";
import { keyOf, useRead, useSignedIn } from "../api/queries.ts";
import type { AnswerOf } from "../api/request.ts";
import { AccountFilter, useListQuery } from "../parts/account-filter.tsx";
import { AskButton } from "../parts/ask-button.tsx";
import { DataTable } from "../parts/data-table.tsx";
import { EmptyState } from "../parts/empty-state.tsx";
import { Named } from "../parts/named.tsx";
import { PageHead } from "../parts/page-head.tsx";
import { Pager } from "../parts/pager.tsx";
import { Reading } from "../parts/reading.tsx";
import { Mark } from "../parts/run-status.tsx";
import { TestLoginButton } from "../parts/test-login-button.tsx";
import { Time } from "../parts/time.tsx";

type Credential = AnswerOf<typeof listCredentials>["items"][number];

export function CredentialListPage() {
  const credentials = useRead(listCredentials, { query: useListQuery() });
  return (
    <>
      <PageHead title="Credentials" about="End users' logins, encrypted. Values are never shown." />
      <AccountFilter />
      <Reading of={credentials}>
        {({ items, next_cursor: next }) =>
          items.length === 0 ? (
            <EmptyState title="No credentials yet">
              An end user creates one by filling in a hosted form. A customer&apos;s backend creates the link
              to it with <code>POST /api/v1/credential-sessions</code>; it then appears under Sessions.
            </EmptyState>
          ) : (
            <>
              <CredentialTable credentials={items} />
              <Pager next={next} />
            </>
          )
        }
      </Reading>
    </>
  );
}

export function CredentialTable({ credentials }: { readonly credentials: readonly Credential[] }) {
  return (
    <DataTable
      name="Credentials"
      rows={credentials}
      keyOf={({ id }) => id}
      columns={[
        {
          title: "Credential",
          cell: ({ id, name }) => <Named name={name ?? "No label"} below={id} />,
        },
        {
          title: "Strategy",
          from: "sm",
          cell: ({ account, strategy }) => (
            <Anchor component={Link} href={`/strategies/${account}/${strategy}`} size="sm">
              {strategy}
            </Anchor>
          ),
        },
        { title: "State", cell: (each) => <State of={each} /> },
        {
          title: "Last used",
          from: "md",
          cell: ({ last_run_id: run }) =>
            run === null ? (
              "never"
            ) : (
              <Anchor component={Link} href={`/runs/${run}`} size="sm">
                Last run
              </Anchor>
            ),
        },
        { title: "Created", from: "md", cell: ({ created_at: at }) => <Time at={at} /> },
        { title: "Actions", cell: (each) => <Actions of={each} /> },
      ]}
    />
  );
}

function State({
  of: { locked_until: until, login_rejections: count, session_until: session },
}: {
  readonly of: Credential;
}) {
  if (until !== null)
    return (
      <>
        <Mark tone="bad">{names.locked}</Mark>
        <Text size="xs" c="dimmed">
          {rejectedName(count)}; unlocks <Time at={until} />
        </Text>
      </>
    );
  if (count > 0) return <Mark tone="waiting">{rejectedName(count)}</Mark>;
  if (session !== null) return <Mark tone="good">{names.loggedIn}</Mark>;
  return <Mark tone="quiet">{names.ready}</Mark>;
}

function Actions({ of: credential }: { readonly of: Credential }) {
  const { may } = useSignedIn();
  const [, go] = useLocation();
  const name = credential.name ?? credential.id;
  const input = { params: { credentialId: credential.id } };
  return (
    <Group gap="xs">
      {may("credential.unlock") && credential.login_rejections > 0 && (
        <AskButton
          to={unlockCredential}
          input={input}
          changes={[keyOf(listCredentials)]}
          label="Unlock"
          of={name}
          title="Unlock this credential?"
          action="Unlock"
          done="The credential was unlocked."
        >
          Runs can log in with it again. If the login is still wrong, the target may lock its user out.
        </AskButton>
      )}
      {may("run.trigger") && (
        <TestLoginButton
          credential={credential.id}
          name={name}
          label="Test login"
          onStarted={(id) => go(`/runs/${id}`)}
        />
      )}
      {may("credential.delete") && (
        <AskButton
          to={deleteCredential}
          input={input}
          changes={[keyOf(listCredentials)]}
          label="Delete"
          of={name}
          title="Delete this credential permanently?"
          action="Delete permanently"
          done="The credential was deleted."
        >
          <b>{name}</b> can&apos;t be brought back, also not from a backup. Runs that wait for it fail. The
          end user can fill in a new form.
        </AskButton>
      )}
    </Group>
  );
}
