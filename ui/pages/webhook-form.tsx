import { Button, Checkbox, Fieldset, Group, Modal, NativeSelect, Stack, TextInput } from "@mantine/core";
import { useState, type FormEvent } from "react";
import { EVENTS_BY_SUBJECT } from "#domain/labels/webhooks.ts";
import { createWebhook, listAccounts, listWebhooks } from "../api/operations.ts";
import { keyOf, useOperation, useRead } from "../api/queries.ts";
import { FailureNote } from "../parts/failure-note.tsx";

const ALL = EVENTS_BY_SUBJECT.flatMap(({ types }) => types.map(([type]): string => type));

/** As few subscriptions as possible: a subject with all its types gets those that are added later, too. */
function subscriptionsTo(chosen: ReadonlySet<string>): string[] {
  if (ALL.every((type) => chosen.has(type))) return ["*"];
  return EVENTS_BY_SUBJECT.flatMap(({ subject, types }) => {
    const of = types.map(([type]) => type).filter((type) => chosen.has(type));
    return of.length === types.length ? [`${subject}.*`] : of;
  });
}

const EMPTY = { account: "", url: "", description: "" };
type Draft = typeof EMPTY;

export function NewWebhook(props: {
  readonly isOpen: boolean;
  readonly onClose: () => void;
  readonly onMade: (secret: string) => void;
}) {
  const accounts = useRead(listAccounts, {}, { enabled: props.isOpen });
  const items = accounts.data?.items ?? [];
  const [draft, setDraft] = useState(EMPTY);
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set(ALL));
  const making = useOperation(createWebhook, {
    changes: [keyOf(listWebhooks)],
    onDone: ({ secret }) => {
      setDraft(EMPTY);
      setChosen(new Set(ALL));
      props.onClose();
      props.onMade(secret);
    },
  });
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    const account = draft.account || (items[0]?.account ?? "");
    making.mutate({ body: { ...draft, account, events: subscriptionsTo(chosen) } });
  };
  return (
    <Modal
      opened={props.isOpen}
      onClose={props.onClose}
      title="New webhook endpoint"
      closeButtonProps={{ "aria-label": "Close" }}
    >
      <form onSubmit={submit}>
        <Stack gap="md">
          {making.failure && <FailureNote error={making.failure} />}
          <Fields
            draft={draft}
            onChange={setDraft}
            accounts={items.map(({ account, name }) => ({ value: account, label: name }))}
          />
          <EventChoice chosen={chosen} onChange={setChosen} />
          <Group justify="flex-end">
            <Button
              type="submit"
              loading={making.isPending}
              disabled={items.length === 0 || chosen.size === 0}
            >
              Create endpoint
            </Button>
          </Group>
        </Stack>
      </form>
    </Modal>
  );
}

function Fields(props: {
  readonly draft: Draft;
  readonly onChange: (draft: Draft) => void;
  readonly accounts: { readonly value: string; readonly label: string }[];
}) {
  const { draft } = props;
  const set =
    (name: keyof Draft) =>
    ({ currentTarget: { value } }: { readonly currentTarget: { readonly value: string } }): void =>
      props.onChange({ ...draft, [name]: value });
  return (
    <>
      <NativeSelect label="Account" value={draft.account} onChange={set("account")} data={props.accounts} />
      <TextInput
        label="URL"
        description="Events are posted there: https://…"
        required
        type="url"
        value={draft.url}
        onChange={set("url")}
      />
      <TextInput
        label="Description"
        value={draft.description}
        maxLength={200}
        onChange={set("description")}
      />
    </>
  );
}

function EventChoice(props: {
  readonly chosen: ReadonlySet<string>;
  readonly onChange: (chosen: ReadonlySet<string>) => void;
}) {
  const { chosen } = props;
  const set = (types: readonly string[], isChosen: boolean): void =>
    props.onChange(
      new Set(isChosen ? [...chosen, ...types] : [...chosen].filter((type) => !types.includes(type))),
    );
  const all = (types: readonly string[], label: string) => (
    <Checkbox
      label={label}
      fw={600}
      checked={types.every((type) => chosen.has(type))}
      indeterminate={types.some((type) => chosen.has(type)) && !types.every((type) => chosen.has(type))}
      onChange={(event) => set(types, event.currentTarget.checked)}
    />
  );
  return (
    <Fieldset legend="Events">
      <Stack gap="sm">
        {all(ALL, "All events")}
        {EVENTS_BY_SUBJECT.map(({ subject, name, types }) => (
          <Stack key={subject} gap={6}>
            {all(
              types.map(([type]) => type),
              name,
            )}
            {types.length > 1 && (
              <Group gap="md" ml="xl">
                {types.map(([type, label]) => (
                  <Checkbox
                    key={type}
                    size="xs"
                    label={label}
                    aria-label={`${name}: ${label}`}
                    checked={chosen.has(type)}
                    onChange={(event) => set([type], event.currentTarget.checked)}
                  />
                ))}
              </Group>
            )}
          </Stack>
        ))}
      </Stack>
    </Fieldset>
  );
}
