import { Button, Group, Modal, NativeSelect, PasswordInput, Stack, Textarea, TextInput } from "@mantine/core";
import { notifications } from "@mantine/notifications";
import { useState, type FormEvent } from "react";
import { ApiFailure } from "../api/failure.ts";
import { listAccounts, listSecrets, setSecret } from "../api/operations.ts";
import { keyOf, useOperation, useRead } from "../api/queries.ts";
import { FailureNote } from "../parts/failure-note.tsx";

/** The secret whose value is replaced. */
interface Replaced {
  readonly account: string;
  readonly name: string;
  readonly origins: readonly string[];
}

/** A secret that a strategy names and that the account does not have: what the form begins with. */
export type Missing = Replaced;

/** Sets a new secret, or replaces the value of an existing one. The entered value is discarded when the form is closed. */
export function SecretForm(props: {
  readonly isOpen: boolean;
  readonly onClose: () => void;
  readonly of: Replaced | null;
  readonly missing?: Missing | null;
}) {
  return (
    <Modal
      opened={props.isOpen}
      onClose={props.onClose}
      title={props.of === null ? "New secret" : `Replace ${props.of.name}`}
      closeButtonProps={{ "aria-label": "Close" }}
    >
      <Fields of={props.of} missing={props.missing ?? null} onClose={props.onClose} />
    </Modal>
  );
}

function useSetting(name: string, onDone: () => void) {
  return useOperation(setSecret, {
    changes: [keyOf(listSecrets)],
    onDone: () => {
      notifications.show({ message: `The secret ${name} was saved.` });
      onDone();
    },
  });
}

function Fields({
  of: replaced,
  missing,
  onClose,
}: {
  readonly of: Replaced | null;
  readonly missing: Missing | null;
  readonly onClose: () => void;
}) {
  const given = replaced ?? missing;
  const accounts = useRead(listAccounts, {}, { enabled: replaced === null });
  const [account, setAccount] = useState(given?.account ?? "");
  const [name, setName] = useState(given?.name ?? "");
  const [origins, setOrigins] = useState(given?.origins.join("\n") ?? "");
  const [value, setValue] = useState("");
  const setting = useSetting(name, onClose);
  const items = accounts.data?.items ?? [];
  const chosen = account || (items[0]?.account ?? "");
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    setting.mutate({
      body: {
        account: chosen,
        name,
        origins: origins.split(/\s+/).filter((origin) => origin !== ""),
        value,
      },
    });
  };
  const { failure } = setting;
  const wrong = (field: string): string | undefined =>
    failure instanceof ApiFailure ? failure.ofField(field) : undefined;
  return (
    <form onSubmit={submit} autoComplete="off">
      <Stack gap="md">
        {failure && <FailureNote error={failure} />}
        {replaced === null && (
          <Place
            accounts={items}
            account={account}
            name={name}
            problem={wrong("name")}
            onAccount={setAccount}
            onName={setName}
          />
        )}
        <Origins value={origins} problem={wrong("origins")} onChange={setOrigins} />
        <PasswordInput
          label="Value"
          description="It is encrypted and never shown again"
          autoComplete="new-password"
          required
          value={value}
          error={wrong("value")}
          onChange={(event) => setValue(event.currentTarget.value)}
        />
        <Group justify="flex-end" gap="xs">
          <Button variant="default" onClick={onClose}>
            Cancel
          </Button>
          <Button type="submit" loading={setting.isPending} disabled={chosen === ""}>
            {replaced === null ? "Save secret" : "Replace secret"}
          </Button>
        </Group>
      </Stack>
    </form>
  );
}

const Origins = (props: {
  readonly value: string;
  readonly problem: string | undefined;
  readonly onChange: (value: string) => void;
}) => (
  <Textarea
    label="Allowed origins"
    description="One per line, for example https://login.example.com: the origin of the token endpoint"
    autosize
    minRows={2}
    required
    value={props.value}
    error={props.problem}
    onChange={(event) => props.onChange(event.currentTarget.value)}
  />
);

/** The secret's account, and its name in documents. */
function Place(props: {
  readonly accounts: readonly { readonly account: string; readonly name: string }[];
  readonly account: string;
  readonly name: string;
  readonly problem: string | undefined;
  readonly onAccount: (account: string) => void;
  readonly onName: (name: string) => void;
}) {
  return (
    <>
      <NativeSelect
        label="Account"
        value={props.account}
        onChange={(event) => props.onAccount(event.currentTarget.value)}
        data={props.accounts.map(({ account, name }) => ({ value: account, label: name }))}
      />
      <TextInput
        label="Name"
        description="Strategies refer to it as client_secret: { secret: NAME }"
        value={props.name}
        required
        maxLength={128}
        error={props.problem}
        onChange={(event) => props.onName(event.currentTarget.value)}
      />
    </>
  );
}
