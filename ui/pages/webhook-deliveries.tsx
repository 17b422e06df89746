import { Anchor, Button, Group, NativeSelect, SegmentedControl, Stack, Text } from "@mantine/core";
import { Fragment, useState } from "react";
import { Link, useSearchParams } from "wouter";
import { DELIVERY_STATE_NAMES } from "#domain/labels/webhooks.ts";
import type { DeliveryState } from "#domain/webhook.ts";
import { listWebhookDeliveries, resendFailedWebhooks } from "../api/operations.ts";
import { keyOf, OFTEN_MS, useOperation, useRead, useSignedIn } from "../api/queries.ts";
import { notifications } from "@mantine/notifications";
import { Confirm } from "../parts/confirm.tsx";
import { DataTable } from "../parts/data-table.tsx";
import { EmptyState } from "../parts/empty-state.tsx";
import { Named } from "../parts/named.tsx";
import { useNow } from "../parts/now.ts";
import { Pager } from "../parts/pager.tsx";
import { Reading } from "../parts/reading.tsx";
import { Mark } from "../parts/run-status.tsx";
import { Section } from "../parts/section.tsx";
import { shortId } from "../parts/short-id.ts";
import { Time } from "../parts/time.tsx";
import { ShowDelivery, type Delivery } from "./webhook-delivery.tsx";
import type { Webhook } from "./webhook-death.ts";

const TONES: Readonly<Record<DeliveryState, string>> = {
  pending: "waiting",
  delivered: "good",
  failed: "bad",
};
const sentence = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1);
const isState = (text: string | null): text is DeliveryState => text !== null && Object.hasOwn(TONES, text);

/** The log of an endpoint's deliveries. */
export function WebhookDeliveries({ of: webhook }: { readonly of: Webhook }) {
  const [search, setSearch] = useSearchParams();
  const state = search.get("state");
  const query = {
    state: isState(state) ? state : undefined,
    cursor: search.get("cursor") ?? undefined,
  };
  const deliveries = useRead(
    listWebhookDeliveries,
    { params: { webhookId: webhook.id }, query },
    { everyMs: OFTEN_MS },
  );
  return (
    <Section title="Deliveries" isBare actions={<ResendFailed webhook={webhook} />}>
      <Stack gap="md">
        <SegmentedControl
          aria-label="State"
          value={query.state ?? ""}
          onChange={(to) => setSearch(to === "" ? new URLSearchParams() : new URLSearchParams({ state: to }))}
          data={[
            { value: "", label: "All" },
            ...Object.entries(DELIVERY_STATE_NAMES).map(([value, name]) => ({
              value,
              label: sentence(name),
            })),
          ]}
          maw={420}
        />
        <Reading of={deliveries}>
          {({ items, next_cursor: next }) =>
            items.length === 0 ? (
              <EmptyState title={query.state === undefined ? "Nothing was sent yet" : "None in this state"}>
                Deliveries are listed here for 30 days, newest first.
              </EmptyState>
            ) : (
              <>
                <DeliveryTable webhook={webhook} deliveries={items} />
                <Pager next={next} />
              </>
            )
          }
        </Reading>
      </Stack>
    </Section>
  );
}

function DeliveryTable(props: { readonly webhook: Webhook; readonly deliveries: readonly Delivery[] }) {
  return (
    <DataTable
      name="Deliveries"
      rows={props.deliveries}
      keyOf={({ event_id: id }) => id}
      columns={[
        {
          title: "Event",
          cell: ({ event_id: id, type }) => (
            <Named name={<EventType of={type} />} id={id} of={`the event ${type}`} />
          ),
        },
        {
          title: "State",
          cell: ({ state, next_attempt_at: next, attempts }) => (
            <>
              <Mark tone={TONES[state]}>{sentence(DELIVERY_STATE_NAMES[state])}</Mark>
              {next !== null && attempts > 0 && (
                <Text size="xs" c="dimmed" component="div">
                  {props.webhook.disabled_at === null ? (
                    <>
                      next attempt <Time at={next} />
                    </>
                  ) : (
                    "waits until the endpoint is enabled"
                  )}
                </Text>
              )}
            </>
          ),
        },
        { title: "Subject", from: "md", cell: (delivery) => <Subject of={delivery} /> },
        {
          title: "Last answer",
          from: "sm",
          cell: ({ last_status: status, last_failure: failure, last_duration_ms: ms }) => (
            <>
              {status ?? failure ?? "none yet"}
              {ms !== null && (
                <Text size="xs" c="dimmed">
                  in {ms} ms
                </Text>
              )}
            </>
          ),
        },
        { title: "Attempts", from: "md", cell: ({ attempts }) => attempts },
        { title: "Happened", from: "sm", cell: ({ occurred_at: at }) => <Time at={at} /> },
        {
          title: "Actions",
          cell: (delivery) => <ShowDelivery webhook={props.webhook} delivery={delivery} />,
        },
      ]}
    />
  );
}

/** A long one may go on in the next line after a dot or an underscore. */
const EventType = ({ of: type }: { readonly of: string }) =>
  type.split(/(?<=[._])/).map((part) => (
    <Fragment key={part}>
      {part}
      <wbr />
    </Fragment>
  ));

const PAGES: Readonly<Record<string, string>> = {
  run: "/runs",
  credential: "/credentials",
  credential_session: "/sessions",
};

function Subject({ of: { type, subject_id: id, subject_name: name } }: { readonly of: Delivery }) {
  const path = PAGES[type.split(".")[0] ?? ""];
  // A deleted credential has no page any more.
  if (path === undefined || type === "credential.deleted") return <span title={id}>{shortId(id)}</span>;
  return (
    <Anchor component={Link} href={`${path}/${id}`} size="sm" title={id}>
      {name ?? shortId(id)}
    </Anchor>
  );
}

const HOUR_MS = 3_600_000;
const SINCE = [
  { value: "1", label: "The last hour" },
  { value: "24", label: "The last 24 hours" },
  { value: "168", label: "The last 7 days" },
  { value: "720", label: "The last 30 days" },
];

function ResendFailed({ webhook }: { readonly webhook: Webhook }) {
  const { may } = useSignedIn();
  const [search] = useSearchParams();
  const [isAsking, setIsAsking] = useState(false);
  const [hours, setHours] = useState("24");
  const now = useNow();
  const resending = useOperation(resendFailedWebhooks, {
    changes: [keyOf(listWebhookDeliveries)],
    onDone: ({ events }) => {
      setIsAsking(false);
      notifications.show({
        message: events === 1 ? "1 event will be sent again." : `${events} events will be sent again.`,
      });
    },
  });
  const hasFailed = webhook.recent.given_up > 0 || search.get("state") === "failed";
  if (!may("webhook.resend") || webhook.disabled_at !== null || !hasFailed) return null;
  const since = new Date(now - Number(hours) * HOUR_MS).toISOString();
  return (
    <Group>
      <Button size="xs" variant="default" onClick={() => setIsAsking(true)}>
        Resend what failed
      </Button>
      <Confirm
        isOpen={isAsking}
        title="Send again what was given up?"
        action="Send again"
        isHarmless
        isBusy={resending.isPending}
        failure={resending.failure}
        onConfirm={() => resending.mutate({ params: { webhookId: webhook.id }, body: { since } })}
        onClose={() => setIsAsking(false)}
      >
        <NativeSelect
          label="Given up in"
          value={hours}
          onChange={(event) => setHours(event.currentTarget.value)}
          data={SINCE}
        />
      </Confirm>
    </Group>
  );
}
