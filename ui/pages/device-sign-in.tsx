import { Button, Code, Group, List, NativeSelect, Paper, Stack, Text, TextInput } from "@mantine/core";
import { useState, type FormEvent } from "react";
import { useSearchParams } from "wouter";
import { ROLE_TEXTS } from "#domain/labels/roles.ts";
import type { OperatorRole } from "#domain/operator.ts";
import { approveDeviceSignIn, denyDeviceSignIn, listTokens, readDeviceSignIn } from "../api/operations.ts";
import { keyOf, useOperation, useRead, useSignedIn } from "../api/queries.ts";
import type { AnswerOf } from "../api/request.ts";
import { Facts } from "../parts/facts.tsx";
import { FailureNote } from "../parts/failure-note.tsx";
import { Note } from "../parts/note.tsx";
import { PageHead } from "../parts/page-head.tsx";
import { Reading } from "../parts/reading.tsx";
import { Time } from "../parts/time.tsx";

type Device = AnswerOf<typeof readDeviceSignIn>;

/** What became of the code, which is then used up. */
type Outcome =
  | { readonly kind: "approved"; readonly role: OperatorRole; readonly until: string }
  | { readonly kind: "denied" };

/** `latchkey login` leads here, with the code in the query, or asks for it to be typed. */
export function DeviceSignInPage() {
  const [search, setSearch] = useSearchParams();
  const [outcome, setOutcome] = useState<Outcome | null>(null);
  const code = search.get("code") ?? "";
  return (
    <>
      <PageHead
        title="Sign in a command line"
        about="latchkey login has shown you a code. Approved, it gets an operator token that acts for you."
      />
      <Paper withBorder radius="lg" p="lg" maw={640}>
        {outcome !== null ? (
          <OutcomeNote of={outcome} />
        ) : code === "" ? (
          <CodeForm onCode={(given) => setSearch({ code: given })} />
        ) : (
          <WaitingDevice code={code} onOutcome={setOutcome} onOther={() => setSearch({})} />
        )}
      </Paper>
    </>
  );
}

function OutcomeNote({ of }: { readonly of: Outcome }) {
  if (of.kind === "denied")
    return (
      <Note tone="quiet" title="Refused" isAlert>
        The command line was not signed in.
      </Note>
    );
  return (
    <Note tone="good" title="Signed in" isAlert>
      Return to the command line: it continues within seconds, as {of.role}, until{" "}
      <Time at={of.until} isExact />. <code>latchkey logout</code> there revokes its token, and so can an
      admin, on the page Operator tokens.
    </Note>
  );
}

function CodeForm({ onCode }: { readonly onCode: (code: string) => void }) {
  const [code, setCode] = useState("");
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    onCode(code.trim());
  };
  return (
    <form onSubmit={submit}>
      <Stack gap="md">
        <TextInput
          label="Code"
          description="As the command line shows it, such as WDJB-MJHT."
          required
          autoFocus
          autoComplete="off"
          spellCheck={false}
          maxLength={20}
          value={code}
          onChange={(event) => setCode(event.currentTarget.value)}
        />
        <Group justify="flex-end">
          <Button type="submit">Continue</Button>
        </Group>
      </Stack>
    </form>
  );
}

function WaitingDevice(props: {
  readonly code: string;
  readonly onOutcome: (outcome: Outcome) => void;
  readonly onOther: () => void;
}) {
  const device = useRead(readDeviceSignIn, { params: { userCode: props.code } });
  return (
    <Stack gap="md">
      <Reading of={device}>{(read) => <Decision device={read} onOutcome={props.onOutcome} />}</Reading>
      {device.isError && (
        <Group justify="flex-end">
          <Button variant="default" onClick={props.onOther}>
            Enter another code
          </Button>
        </Group>
      )}
    </Stack>
  );
}

/** The offered lifetimes, in hours. */
const LIFETIMES = [
  { hours: 12, label: "12 hours" },
  { hours: 7 * 24, label: "7 days" },
  { hours: 30 * 24, label: "30 days" },
];
const HOUR_SECONDS = 3_600;

function Decision({
  device,
  onOutcome,
}: {
  readonly device: Device;
  readonly onOutcome: (outcome: Outcome) => void;
}) {
  const { email, role: ownRole } = useSignedIn();
  const [role, setRole] = useState<OperatorRole>(ownRole);
  const [hours, setHours] = useState("12");
  const input = { params: { userCode: device.user_code } };
  const approving = useOperation(approveDeviceSignIn, {
    changes: [keyOf(listTokens)],
    onDone: ({ expires_at: until }) => onOutcome({ kind: "approved", role, until }),
  });
  const denying = useOperation(denyDeviceSignIn, {
    changes: [],
    onDone: () => onOutcome({ kind: "denied" }),
  });
  const failure = approving.failure ?? denying.failure;
  const approve = (): void =>
    approving.mutate({ ...input, body: { role, lifetime_seconds: Number(hours) * HOUR_SECONDS } });
  return (
    <Stack gap="md">
      <About device={device} />
      <NativeSelect
        label="Role"
        description={ROLE_TEXTS[role]}
        value={role}
        data={[...device.roles]}
        onChange={(event) => setRole(event.currentTarget.value as OperatorRole)}
      />
      <NativeSelect
        label="Works for"
        value={hours}
        data={LIFETIMES.filter((each) => each.hours * HOUR_SECONDS <= device.lifetime_seconds_max).map(
          (each) => ({ value: String(each.hours), label: each.label }),
        )}
        onChange={(event) => setHours(event.currentTarget.value)}
      />
      <Terms email={email} />
      {failure && <FailureNote error={failure} />}
      <Group justify="flex-end">
        <Button
          variant="default"
          loading={denying.isPending}
          disabled={approving.isPending}
          onClick={() => denying.mutate(input)}
        >
          Refuse
        </Button>
        <Button loading={approving.isPending} disabled={denying.isPending} onClick={approve}>
          Approve
        </Button>
      </Group>
    </Stack>
  );
}

function About({ device }: { readonly device: Device }) {
  return (
    <>
      <Note tone="waiting" title="Approve only what you have just begun yourself">
        Compare the code with the one in your terminal. If somebody sent you this link or this code, refuse:
        their command line would act for you.
      </Note>
      <Code block fz="xl" ta="center" aria-label="Code">
        {device.user_code}
      </Code>
      <Facts
        of={[
          ["Asks for it", device.name],
          ["From the address", device.address],
          ["Since", <Time key="at" at={device.created_at} isExact />],
        ]}
      />
    </>
  );
}

function Terms({ email }: { readonly email: string }) {
  return (
    <Text size="sm" component="div">
      The token
      <List size="sm">
        <List.Item>acts for {email}: what it does is recorded under its own id and your name;</List.Item>
        <List.Item>needs no second factor, so keep the time short;</List.Item>
        <List.Item>can't manage operators or tokens, or confirm proposals;</List.Item>
        <List.Item>ends when you are disabled, or lose the role.</List.Item>
      </List>
    </Text>
  );
}
