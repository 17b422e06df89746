import { Button, Checkbox, Group, Modal, NativeSelect, Stack, Text, TextInput } from "@mantine/core";
import { useState, type FormEvent } from "react";
import { KEY_STATE_NAMES as names } from "#domain/labels/states.ts";
import { createKey, listAccounts, listKeys, revokeKey } from "../api/operations.ts";
import { keyOf, useOperation, useRead, useSignedIn } from "../api/queries.ts";
import type { AnswerOf } from "../api/request.ts";
import { AccountFilter, useListQuery } from "../parts/account-filter.tsx";
import { AskButton } from "../parts/ask-button.tsx";
import { DataTable } from "../parts/data-table.tsx";
import { EmptyState } from "../parts/empty-state.tsx";
import { FailureNote } from "../parts/failure-note.tsx";
import { Named } from "../parts/named.tsx";
import { PageHead } from "../parts/page-head.tsx";
import { Reading } from "../parts/reading.tsx";
import { Mark } from "../parts/run-status.tsx";
import { ShownOnce } from "../parts/shown-once.tsx";
import { Time } from "../parts/time.tsx";
import { RotateButton } from "./key-rotation.tsx";

type Key = AnswerOf<typeof listKeys>["items"][number];

const changes = [keyOf(listKeys)];

type Scope = NonNullable<Key["scopes"]>[number];

const SCOPES: Readonly<Record<Scope, string>> = {
  runs: "Trigger, read and cancel runs",
  sessions: "Create and read credential sessions",
  "credentials:delete": "Delete credentials",
  events: "Read the stream of the account's events",
};
const SCOPE_NAMES: Readonly<Record<Scope, string>> = {
  runs: "Runs",
  sessions: "Sessions",
  "credentials:delete": "Delete credentials",
  events: "Events",
};
const ALL = Object.keys(SCOPES) as Scope[];

/** What a key may do; the tooltip has it in full. */
function Scopes({ of: scopes }: { readonly of: Key["scopes"] }) {
  if (scopes === null || ALL.every((scope) => scopes.includes(scope)))
    return (
      <span title="It may do everything that a key can do. A new key can be limited to what its program needs.">
        Everything
      </span>
    );
  return (
    <span title={scopes.map((scope) => SCOPES[scope]).join("\n")}>
      {scopes.map((scope) => SCOPE_NAMES[scope]).join(", ")}
    </span>
  );
}

export function KeyListPage() {
  const { may } = useSignedIn();
  const { account } = useListQuery();
  const keys = useRead(listKeys, { query: { account } });
  const [isMaking, setIsMaking] = useState(false);
  const [made, setMade] = useState<string | null>(null);
  return (
    <>
      <PageHead title="API keys" about="Keys with which accounts' backends call the API.">
        {may("key.manage") && <Button onClick={() => setIsMaking(true)}>New key</Button>}
      </PageHead>
      <AccountFilter />
      <Reading of={keys}>
        {({ items }) =>
          items.length === 0 ? (
            <EmptyState title="No API keys yet" command="latchkey keys create --account acme">
              An account&apos;s backend needs one to create sessions and trigger Blueprints.
            </EmptyState>
          ) : (
            <KeyTable keys={items} onMade={setMade} />
          )
        }
      </Reading>
      <NewKey isOpen={isMaking} onClose={() => setIsMaking(false)} onMade={setMade} />
      <ShownOnce
        title="New API key created"
        text={made}
        about="Copy it now: it won't be shown again. Store it where the account's backend keeps its secrets."
        onKept={() => setMade(null)}
      />
    </>
  );
}

function stateOf(key: Key): readonly [tone: string, name: string] {
  if (key.revoked_at !== null) return ["quiet", names.revoked];
  if (key.expires_at !== null && Date.parse(key.expires_at) < Date.now()) return ["quiet", names.expired];
  // When it expires is a column of its own.
  return ["good", names.active];
}

function KeyTable({
  keys,
  onMade,
}: {
  readonly keys: readonly Key[];
  readonly onMade: (key: string) => void;
}) {
  return (
    <DataTable
      name="API keys"
      rows={keys}
      keyOf={({ id }) => id}
      columns={[
        {
          title: "Key",
          cell: ({ id, name }) => <Named name={name || "No label"} id={id} of={name || id} />,
        },
        { title: "Account", from: "sm", cell: ({ account }) => account },
        {
          title: "State",
          cell: (key) => {
            const [tone, name] = stateOf(key);
            return <Mark tone={tone}>{name}</Mark>;
          },
        },
        {
          title: "Scopes",
          from: "md",
          cell: ({ scopes, blueprints }) => (
            <>
              <Scopes of={scopes} />
              <Text size="xs" c="dimmed">
                {blueprints === null ? "of all Blueprints" : `of ${blueprints.join(", ")}`}
              </Text>
            </>
          ),
        },
        {
          title: "Created",
          from: "md",
          cell: ({ created_at: at, created_by: by }) => (
            <>
              <Time at={at} isShort />
              {by !== null && (
                <Text size="xs" c="dimmed" className="no-wrap">
                  by {by}
                </Text>
              )}
            </>
          ),
        },
        {
          title: "Expires",
          from: "md",
          cell: ({ expires_at: at }) => (at === null ? "never" : <Time at={at} isDate />),
        },
        {
          title: "Last used",
          from: "md",
          cell: ({ last_used_at: at }) => (at === null ? "never" : <Time at={at} isShort />),
        },
        { title: "Actions", cell: (key) => <KeyActions of={key} onMade={onMade} /> },
      ]}
    />
  );
}

function KeyActions({ of: key, onMade }: { readonly of: Key; readonly onMade: (key: string) => void }) {
  const { may } = useSignedIn();
  if (!may("key.manage") || stateOf(key)[0] === "quiet") return null;
  const name = key.name || key.id;
  return (
    <>
      <Group gap="xs">
        {key.replaced_by === null && (
          <RotateButton id={key.id} name={name} expiresAt={key.expires_at} onMade={onMade} />
        )}
        <AskButton
          to={revokeKey}
          input={{ params: { keyId: key.id } }}
          changes={changes}
          label="Revoke"
          isDanger
          of={name}
          title="Revoke this key now?"
          action="Revoke"
          done="The key was revoked."
        >
          Calls with <b>{name}</b> are refused from now on. To give its users time, rotate it: the old key
          works for another day.
        </AskButton>
      </Group>
    </>
  );
}

function NewKey(props: {
  readonly isOpen: boolean;
  readonly onClose: () => void;
  readonly onMade: (key: string) => void;
}) {
  const accounts = useRead(listAccounts, {}, { enabled: props.isOpen });
  const [name, setName] = useState("");
  const [account, setAccount] = useState("");
  const [scopes, setScopes] = useState<readonly Scope[]>(ALL);
  const making = useOperation(createKey, {
    changes,
    onDone: ({ key }) => {
      setName("");
      setScopes(ALL);
      props.onClose();
      props.onMade(key);
    },
  });
  const items = accounts.data?.items ?? [];
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    making.mutate({ body: { account: account || (items[0]?.account ?? ""), name, scopes: [...scopes] } });
  };
  return (
    <Modal
      opened={props.isOpen}
      onClose={props.onClose}
      title="New API key"
      closeButtonProps={{ "aria-label": "Close" }}
    >
      <form onSubmit={submit}>
        <Stack gap="md">
          {making.failure && <FailureNote error={making.failure} />}
          <NativeSelect
            label="Account"
            value={account}
            onChange={(event) => setAccount(event.currentTarget.value)}
            data={items.map((each) => ({ value: each.account, label: each.name }))}
          />
          <TextInput
            label="Label"
            description="For example where the key is used"
            value={name}
            maxLength={255}
            onChange={(event) => setName(event.currentTarget.value)}
          />
          <ScopeChoice scopes={scopes} onChange={setScopes} />
          <Group justify="flex-end">
            <Button
              type="submit"
              loading={making.isPending}
              disabled={items.length === 0 || scopes.length === 0}
            >
              Create key
            </Button>
          </Group>
        </Stack>
      </form>
    </Modal>
  );
}

function ScopeChoice(props: {
  readonly scopes: readonly Scope[];
  readonly onChange: (scopes: readonly Scope[]) => void;
}) {
  return (
    <Checkbox.Group
      label="Scopes"
      description="What the key may do"
      value={[...props.scopes]}
      onChange={(chosen) => props.onChange(ALL.filter((scope) => chosen.includes(scope)))}
    >
      <Stack gap="xs" mt="xs">
        {ALL.map((scope) => (
          <Checkbox key={scope} value={scope} label={SCOPES[scope]} />
        ))}
      </Stack>
    </Checkbox.Group>
  );
}
