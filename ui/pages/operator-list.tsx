import { Anchor, Button, Group, Modal, NativeSelect, Stack, Text, TextInput } from "@mantine/core";
import { useState, type FormEvent } from "react";
import { Link } from "wouter";
import type { OperatorRole } from "#domain/operator.ts";
import { ROLE_TEXTS } from "#domain/labels/roles.ts";
import { DISABLED_NAME } from "#domain/labels/states.ts";
import {
  changeRole,
  createOperator,
  disableOperator,
  enableOperator,
  listOperators,
  resetPassword,
  resetSecondFactor,
  unlinkOperator,
} from "../api/operations.ts";
import { keyOf, useOperation, useRead, useSignedIn } from "../api/queries.ts";
import type { AnswerOf } from "../api/request.ts";
import { LimitDialog } from "./operator-limit.tsx";
import { AccountChoice } from "../parts/account-choice.tsx";
import { AskDialog } from "../parts/ask-button.tsx";
import { Confirm } from "../parts/confirm.tsx";
import { DataTable } from "../parts/data-table.tsx";
import { Facts } from "../parts/facts.tsx";
import { FailureNote } from "../parts/failure-note.tsx";
import { PageHead } from "../parts/page-head.tsx";
import { Reading } from "../parts/reading.tsx";
import { Mark } from "../parts/run-status.tsx";
import { OPERATOR_ROLE_NAMES } from "../parts/roles.ts";
import { RowMenu, type RowAction } from "../parts/row-menu.tsx";
import { ShownOnce } from "../parts/shown-once.tsx";
import { Time } from "../parts/time.tsx";

type Operator = AnswerOf<typeof listOperators>["items"][number];

const changes = [keyOf(listOperators)];

export function OperatorListPage() {
  const { may } = useSignedIn();
  const operators = useRead(listOperators, {});
  const [isMaking, setIsMaking] = useState(false);
  const [password, setPassword] = useState<string | null>(null);
  return (
    <>
      <PageHead title="Operators" about="People who can sign in to this installation, and their roles.">
        {may("operator.manage") && <Button onClick={() => setIsMaking(true)}>New operator</Button>}
      </PageHead>
      <Reading of={operators}>
        {({ items }) => <OperatorTable operators={items} onPassword={setPassword} />}
      </Reading>
      <NewOperator isOpen={isMaking} onClose={() => setIsMaking(false)} onPassword={setPassword} />
      <ShownOnce
        title="New password"
        text={password}
        about="Copy it now: it won't be shown again. Share it over a channel other than email. The operator changes it at the next sign-in."
        onKept={() => setPassword(null)}
      />
    </>
  );
}

function OperatorTable(props: {
  readonly operators: readonly Operator[];
  readonly onPassword: (password: string) => void;
}) {
  return (
    <DataTable
      name="Operators"
      rows={props.operators}
      keyOf={({ id }) => id}
      columns={[
        {
          title: "Operator",
          cell: ({ email, disabled_at: disabled }) => (
            <>
              <Text size="sm" fw={600} truncate maw="20rem" title={email}>
                {email}
              </Text>
              {disabled !== null && <Mark tone="quiet">{DISABLED_NAME}</Mark>}
            </>
          ),
        },
        { title: "Role", cell: ({ role }) => role },
        { title: "Accounts", from: "sm", cell: ({ accounts }) => accounts?.join(", ") ?? "all" },
        {
          title: "Second factor",
          from: "sm",
          cell: ({ has_second_factor: has, single_sign_on_since: since, role }) => (
            <>
              <Factor has={has} role={role} />
              {since !== null && (
                <Text size="xs" c="dimmed">
                  single sign-on since <Time at={since} />
                </Text>
              )}
            </>
          ),
        },
        {
          title: "Last sign-in",
          from: "md",
          cell: ({ signed_in_at: at }) => (at === null ? "never" : <Time at={at} isExact />),
        },
        {
          title: "Actions",
          cell: (operator) => <OperatorActions of={operator} onPassword={props.onPassword} />,
        },
      ]}
    />
  );
}

const ARTICLES: Readonly<Record<OperatorRole, string>> = {
  admin: "an",
  operator: "an",
  reviewer: "a",
  viewer: "a",
};

/** Whether the next sign-in asks for one: an admin has to set it up then. */
function Factor({ has, role }: { readonly has: boolean; readonly role: OperatorRole }) {
  if (has) return <Mark tone="good">Set up</Mark>;
  return (
    <>
      <Mark tone={role === "admin" ? "bad" : "waiting"}>Not set up</Mark>
      {role === "admin" && (
        <Text size="xs" c="dimmed">
          must be set up at the next sign-in
        </Text>
      )}
    </>
  );
}

function RoleDialog(props: {
  readonly of: Operator;
  readonly isOpen: boolean;
  readonly onClose: () => void;
}) {
  const { id, email, role } = props.of;
  const [wanted, setWanted] = useState<OperatorRole>(role);
  const changing = useOperation(changeRole, { changes, onDone: props.onClose });
  return (
    <Confirm
      isOpen={props.isOpen}
      title={
        wanted === role ? `Change the role of ${email}?` : `Make ${email} ${ARTICLES[wanted]} ${wanted}?`
      }
      action="Change role"
      isBlocked={wanted === role}
      isBusy={changing.isPending}
      failure={changing.failure}
      onConfirm={() => changing.mutate({ params: { operatorId: id }, body: { role: wanted } })}
      onClose={() => {
        setWanted(role);
        changing.reset();
        props.onClose();
      }}
    >
      <NativeSelect
        label={`Role of ${email}`}
        value={wanted}
        data={OPERATOR_ROLE_NAMES.map((name) => name)}
        onChange={(event) => setWanted(event.currentTarget.value as OperatorRole)}
        mb="md"
      />
      <Facts
        of={[
          [`New role: ${wanted}`, wanted === role ? null : ROLE_TEXTS[wanted]],
          [`Current role: ${role}`, ROLE_TEXTS[role]],
        ]}
      />
      <Text size="sm" mt="md">
        Their sessions end.
      </Text>
    </Confirm>
  );
}

function OperatorActions(props: { readonly of: Operator; readonly onPassword: (password: string) => void }) {
  const me = useSignedIn();
  const { id, email } = props.of;
  if (!me.may("operator.manage")) return null;
  if (id === me.id)
    return (
      <Anchor component={Link} href="/me" size="sm">
        Your account
      </Anchor>
    );
  return <RowMenu of={email} actions={actionsOf(props.of, props.onPassword)} />;
}

function actionsOf(of: Operator, onPassword: (password: string) => void): readonly RowAction[] {
  const { id, email, disabled_at: disabled, has_second_factor: hasFactor } = of;
  const input = { params: { operatorId: id } };
  const who = `${ARTICLES[of.role]} ${of.role}`;
  const password: RowAction = {
    label: "New password",
    dialog: (state) => (
      <AskDialog
        {...state}
        to={resetPassword}
        input={input}
        changes={changes}
        title={`Set a new password for ${email}?`}
        action="Set a new password"
        done="The password was replaced and their sessions ended."
        onDone={(answer) => onPassword(answer.password)}
      >
        The password of <b>{email}</b>, {who}, stops working now. You get a new one to hand over. Make sure
        that the request really comes from them.
      </AskDialog>
    ),
  };
  const factor: RowAction = {
    label: "Reset second factor",
    dialog: (state) => (
      <AskDialog
        {...state}
        to={resetSecondFactor}
        input={input}
        changes={changes}
        title={`Reset the second factor of ${email}?`}
        action="Reset"
        done="The second factor was reset and their sessions ended."
      >
        Use this for a lost phone. Until they set up another one, the password alone lets <b>{email}</b>,{" "}
        {who}, in. Make sure that the request really comes from them.
      </AskDialog>
    ),
  };
  return [
    { label: "Change role", dialog: (state) => <RoleDialog of={of} {...state} /> },
    password,
    ...(hasFactor ? [factor] : []),
    { label: "Accounts", dialog: (state) => <LimitDialog of={of} {...state} /> },
    ...(of.single_sign_on_since === null ? [] : [unlinkAction(of)]),
    disabled === null ? disableAction(of) : enableAction(of),
  ];
}

const disableAction = ({ id, email }: Operator): RowAction => ({
  label: "Disable",
  isDanger: true,
  dialog: (state) => (
    <AskDialog
      {...state}
      to={disableOperator}
      input={{ params: { operatorId: id } }}
      changes={changes}
      title={`Disable ${email}?`}
      action="Disable"
      done="The operator was disabled and their sessions ended."
    >
      <b>{email}</b> is out at once. It can be undone.
    </AskDialog>
  ),
});

const enableAction = ({ id, email }: Operator): RowAction => ({
  label: "Enable",
  dialog: (state) => (
    <AskDialog
      {...state}
      to={enableOperator}
      input={{ params: { operatorId: id } }}
      changes={changes}
      title={`Enable ${email}?`}
      action="Enable"
      done="The operator can sign in again."
    >
      <b>{email}</b> can sign in with the password that they had.
    </AskDialog>
  ),
});

const unlinkAction = ({ id, email }: Operator): RowAction => ({
  label: "Unlink single sign-on",
  dialog: (state) => (
    <AskDialog
      {...state}
      to={unlinkOperator}
      input={{ params: { operatorId: id } }}
      changes={changes}
      title={`Unlink the single sign-on account of ${email}?`}
      action="Unlink"
      done="The account was unlinked and their sessions ended."
    >
      The next person who signs in through the provider with the email <b>{email}</b> becomes this operator.
    </AskDialog>
  ),
});

function NewOperator(props: {
  readonly isOpen: boolean;
  readonly onClose: () => void;
  readonly onPassword: (password: string) => void;
}) {
  const [email, setEmail] = useState("");
  const [role, setRole] = useState<OperatorRole>("viewer");
  const [accounts, setAccounts] = useState<readonly string[]>([]);
  const making = useOperation(createOperator, {
    changes,
    onDone: ({ password }) => {
      setEmail("");
      setAccounts([]);
      props.onClose();
      props.onPassword(password);
    },
  });
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    making.mutate({ body: { email, role, ...(accounts.length === 0 ? {} : { accounts: [...accounts] }) } });
  };
  return (
    <Modal
      opened={props.isOpen}
      onClose={props.onClose}
      title="New operator"
      closeButtonProps={{ "aria-label": "Close" }}
    >
      <form onSubmit={submit}>
        <Stack gap="md">
          {making.failure && <FailureNote error={making.failure} />}
          <TextInput
            label="Email"
            required
            value={email}
            onChange={(event) => setEmail(event.currentTarget.value)}
          />
          <NativeSelect
            label="Role"
            description={ROLE_TEXTS[role]}
            value={role}
            data={OPERATOR_ROLE_NAMES.map((name) => name)}
            onChange={(event) => setRole(event.currentTarget.value as OperatorRole)}
          />
          <AccountChoice value={accounts} onChange={setAccounts} />
          <Group justify="flex-end">
            <Button variant="default" onClick={props.onClose}>
              Cancel
            </Button>
            <Button type="submit" loading={making.isPending}>
              Create operator
            </Button>
          </Group>
        </Stack>
      </form>
    </Modal>
  );
}
