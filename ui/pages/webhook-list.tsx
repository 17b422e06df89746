import { Anchor, Button, List, Stack, Text } from "@mantine/core";
import { useState } from "react";
import { Link } from "wouter";
import { listWebhooks } from "../api/operations.ts";
import { OFTEN_MS, useRead, useSignedIn } from "../api/queries.ts";
import { AccountFilter, useListQuery } from "../parts/account-filter.tsx";
import { DataTable } from "../parts/data-table.tsx";
import { EmptyState } from "../parts/empty-state.tsx";
import { Named } from "../parts/named.tsx";
import { Note } from "../parts/note.tsx";
import { PageHead } from "../parts/page-head.tsx";
import { Reading } from "../parts/reading.tsx";
import { ShownOnce } from "../parts/shown-once.tsx";
import { Time } from "../parts/time.tsx";
import { NewWebhook } from "./webhook-form.tsx";
import { describeDeath, isDead, type Webhook } from "./webhook-death.ts";
import { DeliveryRate, WebhookState } from "./webhook-state.tsx";

export function WebhookListPage() {
  const { may } = useSignedIn();
  const { account } = useListQuery();
  const webhooks = useRead(listWebhooks, { query: { account } }, { everyMs: OFTEN_MS });
  const [isMaking, setIsMaking] = useState(false);
  const [secret, setSecret] = useState<string | null>(null);
  return (
    <>
      <PageHead title="Webhooks" about="Endpoints that are sent an account's events, signed.">
        {may("webhook.manage") && <Button onClick={() => setIsMaking(true)}>New endpoint</Button>}
      </PageHead>
      <AccountFilter />
      <Reading of={webhooks}>
        {({ items }) =>
          items.length === 0 ? (
            <EmptyState
              title="No endpoints yet"
              command="latchkey webhooks create https://example.com/webhooks --account acme"
            >
              With one, an account&apos;s backend is told when a run ends or a credential is there, instead of
              polling.
            </EmptyState>
          ) : (
            <Stack gap="md">
              <DeadNote of={items.filter(isDead)} />
              <WebhookTable webhooks={items} />
            </Stack>
          )
        }
      </Reading>
      <NewWebhook isOpen={isMaking} onClose={() => setIsMaking(false)} onMade={setSecret} />
      <NewSecret title="New endpoint created" secret={secret} onKept={() => setSecret(null)} />
    </>
  );
}

/** A signing secret, shown once. */
export function NewSecret(props: {
  readonly title: string;
  readonly secret: string | null;
  readonly onKept: () => void;
}) {
  return (
    <ShownOnce
      title={props.title}
      text={props.secret}
      about="Copy the signing secret now: it won't be shown again. The receiver verifies with it that requests come from here."
      onKept={props.onKept}
    />
  );
}

function DeadNote({ of: dead }: { readonly of: readonly Webhook[] }) {
  if (dead.length === 0) return null;
  const title =
    dead.length === 1
      ? "An endpoint was disabled, because it failed"
      : `${dead.length} endpoints were disabled, because they failed`;
  return (
    <Note tone="bad" title={title}>
      {dead.length === 1 ? "Its events are" : "Their events are"} no longer delivered. Open{" "}
      {dead.length === 1 ? "it" : "each"} to change its URL, or to enable it once its receiver is repaired.
      <List size="sm" mt="xs">
        {dead.map((webhook) => (
          <List.Item key={webhook.id}>
            <Anchor
              component={Link}
              href={`/webhooks/${webhook.id}`}
              size="sm"
              underline="always"
              display="inline-block"
              py={4}
            >
              {webhook.url}
            </Anchor>
            : {describeDeath(webhook)}
          </List.Item>
        ))}
      </List>
    </Note>
  );
}

function WebhookTable({ webhooks }: { readonly webhooks: readonly Webhook[] }) {
  return (
    <DataTable
      name="Webhook endpoints"
      rows={webhooks}
      keyOf={({ id }) => id}
      columns={[
        {
          title: "Endpoint",
          cell: ({ id, url, description }) => (
            <>
              <Named
                name={
                  <Anchor
                    component={Link}
                    href={`/webhooks/${id}`}
                    fw={600}
                    size="sm"
                    display="inline-block"
                    py={4}
                  >
                    {url}
                  </Anchor>
                }
                id={id}
                of={url}
              />
              {description !== "" && (
                <Text size="xs" c="dimmed">
                  {description}
                </Text>
              )}
            </>
          ),
        },
        { title: "State", cell: (webhook) => <WebhookState of={webhook} /> },
        { title: "Newest deliveries", from: "sm", cell: (webhook) => <DeliveryRate of={webhook} /> },
        {
          title: "Last delivered",
          from: "sm",
          cell: ({ last_delivered_at: at }) => (at === null ? "never" : <Time at={at} isShort />),
        },
        { title: "Account", from: "sm", cell: ({ account }) => account ?? "none: operators" },
        { title: "Events", from: "md", cell: ({ events }) => <Events of={events} /> },
      ]}
    />
  );
}

export const Events = ({ of: events }: { readonly of: readonly string[] }) =>
  events.includes("*") ? "all" : events.join(", ");
