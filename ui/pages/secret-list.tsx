import { Anchor, Button, Group, Stack, Text } from "@mantine/core";
import { useState } from "react";
import { Link, useSearchParams } from "wouter";
import { deleteSecret, listSecrets } from "../api/operations.ts";
import { keyOf, useRead, useSignedIn } from "../api/queries.ts";
import type { AnswerOf } from "../api/request.ts";
import { AccountFilter, useListQuery } from "../parts/account-filter.tsx";
import { AskButton } from "../parts/ask-button.tsx";
import { DataTable } from "../parts/data-table.tsx";
import { EmptyState } from "../parts/empty-state.tsx";
import { Named } from "../parts/named.tsx";
import { Note } from "../parts/note.tsx";
import { PageHead } from "../parts/page-head.tsx";
import { Reading } from "../parts/reading.tsx";
import { Mark } from "../parts/run-status.tsx";
import { Time } from "../parts/time.tsx";
import { SecretForm, type Missing } from "./secret-form.tsx";

type Secrets = AnswerOf<typeof listSecrets>;
type Secret = Secrets["items"][number];

export function SecretListPage() {
  const { may } = useSignedIn();
  const { account } = useListQuery();
  const secrets = useRead(listSecrets, { query: { account } });
  const [isSetting, setIsSetting] = useState(false);
  return (
    <>
      <PageHead
        title="Account secrets"
        about="Secrets of OAuth clients, encrypted together with the origins that they may be sent to. Values are never shown."
      >
        {may("secret.manage") && <Button onClick={() => setIsSetting(true)}>New secret</Button>}
      </PageHead>
      <AccountFilter />
      <Reading of={secrets}>
        {({ items, problems }) => (
          <Stack gap="md">
            <Problems of={problems} />
            {items.length === 0 ? (
              <EmptyState
                title="No secrets yet"
                command="latchkey secrets set --account acme NAME --for https://login.example.com"
              >
                A strategy of type <code>oauth2</code> names one where the target has given the client a
                secret.
              </EmptyState>
            ) : (
              <SecretTable secrets={items} />
            )}
          </Stack>
        )}
      </Reading>
      <SecretForm isOpen={isSetting} onClose={() => setIsSetting(false)} of={null} />
    </>
  );
}

const REMEDIES: Readonly<Record<Secrets["problems"][number]["kind"], string>> = {
  missing_secret: "Its sign-ins and runs fail until it is set.",
  other_origin: "Correct the strategy, or replace the secret and allow this origin.",
  missing_variable: "Set a secret here, and name it in the strategy instead of the variable.",
  variable: "Set a secret here, and name it in the strategy instead of the variable.",
};

type Problem = Secrets["problems"][number];

const missingOf = ({ account, name, origin }: Problem): Missing => ({
  account,
  name,
  origins: origin === null ? [] : [origin],
});

/** What strategies lack. The one whose form is open is in the URL, so that other pages lead to it. */
function Problems({ of: problems }: { readonly of: Secrets["problems"] }) {
  const { may } = useSignedIn();
  const [search, setSearch] = useSearchParams();
  const wanted = search.get("set");
  const sought = problems.find(
    ({ account: of, kind, name }) => kind === "missing_secret" && `${of}/${name}` === wanted,
  );
  const missing = sought && may("secret.manage") ? missingOf(sought) : null;
  const setMissing = (of: Problem | null): void =>
    setSearch(
      (before) => {
        const after = new URLSearchParams(before);
        after.delete("set");
        if (of !== null) after.set("set", `${of.account}/${of.name}`);
        return after;
      },
      { replace: true },
    );
  if (problems.length === 0) return null;
  return (
    <Note tone="waiting" title="Strategies with a missing or expiring secret">
      <ul className="plain-list problem-rows">
        {problems.map((problem) => (
          <li key={problem.message}>
            <span>
              {problem.message} {REMEDIES[problem.kind]}
            </span>
            {problem.kind === "missing_secret" && may("secret.manage") && (
              <Button size="xs" onClick={() => setMissing(problem)}>
                Set {problem.name}
              </Button>
            )}
          </li>
        ))}
      </ul>
      <SecretForm isOpen={missing !== null} onClose={() => setMissing(null)} of={null} missing={missing} />
    </Note>
  );
}

function SecretTable({ secrets }: { readonly secrets: readonly Secret[] }) {
  return (
    <DataTable
      name="Account secrets"
      rows={secrets}
      keyOf={({ account, name }) => `${account}/${name}`}
      columns={[
        {
          title: "Secret",
          cell: ({ name, account }) => <Named name={name} below={account} />,
        },
        {
          title: "Allowed origins",
          cell: ({ origins }) =>
            origins.map((origin) => (
              <Text key={origin} size="sm">
                {origin}
              </Text>
            )),
        },
        { title: "Strategies", from: "md", cell: (secret) => <Uses of={secret} /> },
        {
          title: "Updated",
          from: "sm",
          cell: ({ set_at: at, set_by: by, is_overridden: isOverridden }) => (
            <>
              <Text size="sm" component="div">
                <Time at={at} /> by {by ?? "the command line"}
              </Text>
              {isOverridden && (
                <Text size="xs" c="dimmed">
                  The settings file has another value, which takes precedence.
                </Text>
              )}
            </>
          ),
        },
        { title: "Actions", cell: (secret) => <SecretActions of={secret} /> },
      ]}
    />
  );
}

function Uses({ of: { account, strategies } }: { readonly of: Secret }) {
  if (strategies.length === 0) return <Mark tone="waiting">Not used</Mark>;
  return strategies.map((strategy) => (
    <Anchor
      key={strategy}
      component={Link}
      href={`/strategies/${account}/${strategy}`}
      size="sm"
      display="block"
    >
      {strategy}
    </Anchor>
  ));
}

function SecretActions({ of: secret }: { readonly of: Secret }) {
  const { may } = useSignedIn();
  const [isReplacing, setIsReplacing] = useState(false);
  if (!may("secret.manage")) return null;
  const { account, name, strategies } = secret;
  const isUsed = strategies.length > 0;
  return (
    <Group gap="xs">
      <Button variant="default" size="xs" aria-label={`Replace ${name}`} onClick={() => setIsReplacing(true)}>
        Replace
      </Button>
      <SecretForm isOpen={isReplacing} onClose={() => setIsReplacing(false)} of={secret} />
      <AskButton
        to={deleteSecret}
        input={{ params: { account, secret: name }, query: { force: isUsed || undefined } }}
        changes={[keyOf(listSecrets)]}
        label="Delete"
        isDanger
        of={name}
        title="Delete this secret permanently?"
        action="Delete permanently"
        done="The secret was deleted."
      >
        {isUsed ? (
          <>
            <b>{strategies.join(", ")}</b> {strategies.length === 1 ? "uses" : "use"} <b>{name}</b>: sign-ins
            and runs of {strategies.length === 1 ? "this strategy" : "these strategies"} fail from now on.
          </>
        ) : (
          <>
            No current strategy uses <b>{name}</b>. Its value can&apos;t be restored.
          </>
        )}
      </AskButton>
    </Group>
  );
}
