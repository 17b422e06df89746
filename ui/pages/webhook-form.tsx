import { Button, Checkbox, Group, Modal, NativeSelect, Stack, Text, TextInput } from "@mantine/core";
import { notifications } from "@mantine/notifications";
import { useState, type FormEvent } from "react";
import { EVENTS_BY_SUBJECT, OPERATOR_EVENTS, type EventsOfSubject } from "#domain/labels/webhooks.ts";
import { createWebhook, listAccounts, listWebhooks, updateWebhook } from "../api/operations.ts";
import { keyOf, useOperation, useRead, useSignedIn } from "../api/queries.ts";
import { FailureNote } from "../parts/failure-note.tsx";
import type { Webhook } from "./webhook-death.ts";

const typesOf = (subjects: readonly EventsOfSubject[]): readonly string[] =>
  subjects.flatMap(({ types }) => types.map(([type]): string => type));

/** What an endpoint of an account can have, or one of the operators. */
const eventsFor = (account: string | null): readonly EventsOfSubject[] =>
  account === null ? OPERATOR_EVENTS : EVENTS_BY_SUBJECT;

/** As few subscriptions as possible: a subject with all its types gets those that are added later, too. */
function subscriptionsTo(chosen: ReadonlySet<string>, subjects: readonly EventsOfSubject[]): string[] {
  if (typesOf(subjects).every((type) => chosen.has(type))) return ["*"];
  return subjects.flatMap(({ subject, types }) => {
    const of = types.map(([type]) => type).filter((type) => chosen.has(type));
    return of.length === types.length ? [`${subject}.*`] : of;
  });
}

/** The types of subscriptions. */
function typesIn(
  subscriptions: readonly string[],
  subjects: readonly EventsOfSubject[],
): ReadonlySet<string> {
  const has = (type: string): boolean =>
    subscriptions.some((each) => each === "*" || each === type || each === `${type.split(".")[0]}.*`);
  return new Set(typesOf(subjects).filter(has));
}

/** In the place of an account's name. */
const OPERATORS = "*";

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
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set(typesOf(EVENTS_BY_SUBJECT)));
  const { accounts: limit } = useSignedIn();
  const account = draft.account || (items[0]?.account ?? OPERATORS);
  const subjects = eventsFor(account === OPERATORS ? null : account);
  const making = useOperation(createWebhook, {
    changes: [keyOf(listWebhooks)],
    onDone: ({ secret }) => {
      setDraft(EMPTY);
      setChosen(new Set(typesOf(EVENTS_BY_SUBJECT)));
      props.onClose();
      props.onMade(secret);
    },
  });
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    const { url, description } = draft;
    const of = account === OPERATORS ? {} : { account };
    making.mutate({ body: { ...of, url, description, events: subscriptionsTo(chosen, subjects) } });
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
            onChange={(next) => {
              const isOf = next.account === OPERATORS ? null : next.account;
              if (next.account !== draft.account) setChosen(new Set(typesOf(eventsFor(isOf))));
              setDraft(next);
            }}
            accounts={[
              ...items.map(({ account: value, name }) => ({ value, label: name })),
              ...(limit !== null ? [] : [{ value: OPERATORS, label: "None: for operators" }]),
            ]}
          />
          <EventChoice subjects={subjects} chosen={chosen} onChange={setChosen} />
          <Group justify="flex-end" gap="xs">
            <Button variant="default" onClick={props.onClose}>
              Cancel
            </Button>
            <Button type="submit" loading={making.isPending} disabled={chosen.size === 0}>
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

interface ChangeProps {
  readonly webhook: Webhook;
  readonly isOpen: boolean;
  readonly onClose: () => void;
}

/** The dialog in which an endpoint's URL, events and description are changed. */
export function ChangeDialog(props: ChangeProps) {
  return (
    <Modal
      opened={props.isOpen}
      onClose={props.onClose}
      title="Change the endpoint"
      closeButtonProps={{ "aria-label": "Close" }}
    >
      {/* Each time with what it has then. */}
      {props.isOpen && <ChangeForm {...props} />}
    </Modal>
  );
}

function ChangeForm({ webhook, onClose }: ChangeProps) {
  const subjects = eventsFor(webhook.account);
  const [url, setUrl] = useState(webhook.url);
  const [description, setDescription] = useState(webhook.description);
  const [chosen, setChosen] = useState(() => typesIn(webhook.events, subjects));
  const changing = useOperation(updateWebhook, {
    changes: [keyOf(listWebhooks)],
    onDone: () => {
      onClose();
      notifications.show({
        message:
          webhook.disabled_at !== null && url !== webhook.url
            ? "The URL was changed. The endpoint is still disabled: enable it now."
            : "The endpoint was changed.",
      });
    },
  });
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    changing.mutate({
      params: { webhookId: webhook.id },
      body: {
        description,
        events: subscriptionsTo(chosen, subjects),
        ...(url === webhook.url ? {} : { url }),
      },
    });
  };
  return (
    <form onSubmit={submit}>
      <Stack gap="md">
        {changing.failure && <FailureNote error={changing.failure} />}
        <TextInput
          label="URL"
          description="What waits for the endpoint is sent there, too, signed with the same secret."
          required
          type="url"
          value={url}
          onChange={(event) => setUrl(event.currentTarget.value)}
        />
        <TextInput
          label="Description"
          value={description}
          maxLength={200}
          onChange={(event) => setDescription(event.currentTarget.value)}
        />
        <EventChoice subjects={subjects} chosen={chosen} onChange={setChosen} />
        <Group justify="flex-end">
          <Button type="submit" loading={changing.isPending} disabled={chosen.size === 0}>
            Save
          </Button>
        </Group>
      </Stack>
    </form>
  );
}

/** Opens it where a URL is the remedy. */
export function ChangeUrlButton({ webhook }: { readonly webhook: Webhook }) {
  const [isOpen, setIsOpen] = useState(false);
  return (
    <>
      <Button size="xs" onClick={() => setIsOpen(true)}>
        Change the URL
      </Button>
      <ChangeDialog webhook={webhook} isOpen={isOpen} onClose={() => setIsOpen(false)} />
    </>
  );
}

function EventChoice(props: {
  readonly subjects: readonly EventsOfSubject[];
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
    <Stack gap="sm" component="fieldset" className="bare-fields" aria-label="Events">
      <Text size="sm" fw={600} aria-hidden="true">
        Events
      </Text>
      <Stack gap="sm">
        {all(typesOf(props.subjects), "All events")}
        {props.subjects.map(({ subject, name, types }) => (
          <Stack key={subject} gap={6}>
            {all(
              types.map(([type]) => type),
              name,
            )}
            {types.length > 1 && (
              <div className="inset">
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
              </div>
            )}
          </Stack>
        ))}
      </Stack>
    </Stack>
  );
}
