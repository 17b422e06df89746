import { Button, Group, Modal, NativeSelect, Stack, Text, TextInput } from "@mantine/core";
import { useState, type FormEvent } from "react";
import { ROLE_TEXTS } from "#domain/labels/roles.ts";
import { KEY_STATE_NAMES as names } from "#domain/labels/states.ts";
import type { OperatorRole } from "#domain/operator.ts";
import { createToken, listTokens, revokeToken } from "../api/operations.ts";
import { keyOf, useOperation, useRead, useSignedIn } from "../api/queries.ts";
import type { AnswerOf } from "../api/request.ts";
import { AccountChoice } from "../parts/account-choice.tsx";
import { AskButton } from "../parts/ask-button.tsx";
import { DataTable } from "../parts/data-table.tsx";
import { EmptyState } from "../parts/empty-state.tsx";
import { FailureNote } from "../parts/failure-note.tsx";
import { Named } from "../parts/named.tsx";
import { PageHead } from "../parts/page-head.tsx";
import { Reading } from "../parts/reading.tsx";
import { OPERATOR_ROLE_NAMES } from "../parts/roles.ts";
import { Mark } from "../parts/run-status.tsx";
import { ShownOnce } from "../parts/shown-once.tsx";
import { Time } from "../parts/time.tsx";

type Token = AnswerOf<typeof listTokens>["items"][number];

const changes = [keyOf(listTokens)];

export function TokenListPage() {
  const { may } = useSignedIn();
  const tokens = useRead(listTokens, {});
  const [isMaking, setIsMaking] = useState(false);
  const [made, setMade] = useState<string | null>(null);
  return (
    <>
      <PageHead
        title="Operator tokens"
        about="Tokens with which programs do what operators do: continuous integration, and the command line of other machines."
      >
        {may("token.manage") && <Button onClick={() => setIsMaking(true)}>New token</Button>}
      </PageHead>
      <Reading of={tokens}>
        {({ items }) =>
          items.length === 0 ? (
            <EmptyState
              title="No operator tokens yet"
              command="latchkey tokens create --role operator --name ci --expires 90d"
            >
              With one, <code>latchkey plan</code> and <code>apply</code> work from any machine, without the
              database and without a key.
            </EmptyState>
          ) : (
            <TokenTable tokens={items} />
          )
        }
      </Reading>
      <NewToken isOpen={isMaking} onClose={() => setIsMaking(false)} onMade={setMade} />
      <ShownOnce
        title="New operator token created"
        text={made}
        about="Copy it now: it won't be shown again. Store it where the program keeps its secrets, as LATCHKEY_TOKEN."
        onKept={() => setMade(null)}
      />
    </>
  );
}

function stateOf({
  revoked_at: revoked,
  is_expired: isExpired,
}: Token): readonly [tone: string, name: string] {
  if (revoked !== null) return ["quiet", names.revoked];
  return isExpired ? ["quiet", names.expired] : ["good", names.expiring];
}

function TokenTable({ tokens }: { readonly tokens: readonly Token[] }) {
  return (
    <DataTable
      name="Operator tokens"
      rows={tokens}
      keyOf={({ id }) => id}
      columns={[
        { title: "Token", cell: ({ id, name }) => <Named name={name} id={id} of={name} /> },
        { title: "Role", from: "sm", cell: ({ role }) => role },
        { title: "Accounts", from: "md", cell: ({ accounts }) => accounts?.join(", ") ?? "all" },
        { title: "State", cell: (token) => <State of={token} /> },
        {
          title: "Created",
          from: "md",
          cell: ({ created_at: at, created_by: by }) => (
            <>
              <Time at={at} />
              <Text size="xs" c="dimmed" className="any-break">
                {by ?? "by the command line"}
              </Text>
            </>
          ),
        },
        {
          title: "Last used",
          from: "md",
          cell: ({ last_used_at: at }) => (at === null ? "never" : <Time at={at} />),
        },
        { title: "Actions", cell: (token) => <RevokeButton of={token} /> },
      ]}
    />
  );
}

function State({ of: token }: { readonly of: Token }) {
  const [tone, name] = stateOf(token);
  return (
    <>
      <Mark tone={tone}>{tone === "quiet" ? name : names.active}</Mark>
      {tone !== "quiet" && (
        <Text size="xs" c="dimmed">
          expires <Time at={token.expires_at} />
        </Text>
      )}
    </>
  );
}

function RevokeButton({ of: token }: { readonly of: Token }) {
  const { may } = useSignedIn();
  if (!may("token.manage") || stateOf(token)[0] === "quiet") return null;
  return (
    <AskButton
      to={revokeToken}
      input={{ params: { tokenId: token.id } }}
      changes={changes}
      label="Revoke"
      isDanger
      of={token.name}
      title="Revoke this token now?"
      action="Revoke"
      done="The token was revoked."
    >
      Programs that use <b>{token.name}</b> are refused from their next request on.
    </AskButton>
  );
}

/** The offered lifetimes, in days. */
const LIFETIMES = [7, 30, 90, 365];
const DAY_SECONDS = 86_400;

function NewToken(props: {
  readonly isOpen: boolean;
  readonly onClose: () => void;
  readonly onMade: (token: string) => void;
}) {
  const [name, setName] = useState("");
  const [role, setRole] = useState<OperatorRole>("viewer");
  const [days, setDays] = useState("90");
  const [accounts, setAccounts] = useState<readonly string[]>([]);
  const making = useOperation(createToken, {
    changes,
    onDone: ({ token }) => {
      setName("");
      setRole("viewer");
      setAccounts([]);
      props.onClose();
      props.onMade(token);
    },
  });
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    const limit = accounts.length === 0 ? {} : { accounts: [...accounts] };
    making.mutate({ body: { name, role, ...limit, lifetime_seconds: Number(days) * DAY_SECONDS } });
  };
  return (
    <Modal
      opened={props.isOpen}
      onClose={props.onClose}
      title="New operator token"
      closeButtonProps={{ "aria-label": "Close" }}
    >
      <form onSubmit={submit}>
        <Stack gap="md">
          {making.failure && <FailureNote error={making.failure} />}
          <TextInput
            label="Label"
            description="The program that uses it. Its decisions are recorded under this name."
            required
            value={name}
            maxLength={255}
            onChange={(event) => setName(event.currentTarget.value)}
          />
          <NativeSelect
            label="Role"
            description={ROLE_TEXTS[role]}
            value={role}
            data={OPERATOR_ROLE_NAMES.map((each) => each)}
            onChange={(event) => setRole(event.currentTarget.value as OperatorRole)}
          />
          <NativeSelect
            label="Expires after"
            value={days}
            data={LIFETIMES.map((each) => ({ value: String(each), label: `${each} days` }))}
            onChange={(event) => setDays(event.currentTarget.value)}
          />
          <AccountChoice value={accounts} onChange={setAccounts} />
          <Text size="sm" c="dimmed">
            No token can manage operators or tokens, or confirm proposals.
          </Text>
          <Group justify="flex-end">
            <Button type="submit" loading={making.isPending}>
              Create token
            </Button>
          </Group>
        </Stack>
      </form>
    </Modal>
  );
}
