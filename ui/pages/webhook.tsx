import { Button, NativeSelect, Stack, Text } from "@mantine/core";
import { notifications } from "@mantine/notifications";
import { useState, type ReactNode } from "react";
import { useLocation, useParams } from "wouter";
import {
  deleteWebhook,
  disableWebhook,
  enableWebhook,
  listWebhookDeliveries,
  listWebhooks,
  pingWebhook,
  rotateWebhook,
} from "../api/operations.ts";
import { keyOf, OFTEN_MS, useOperation, useRead, useSignedIn } from "../api/queries.ts";
import { AskButton, AskDialog } from "../parts/ask-button.tsx";
import { Confirm } from "../parts/confirm.tsx";
import { Copyable } from "../parts/copyable.tsx";
import { EmptyState } from "../parts/empty-state.tsx";
import { Facts } from "../parts/facts.tsx";
import { PageHead } from "../parts/page-head.tsx";
import { Reading } from "../parts/reading.tsx";
import { RowMenu, type RowAction } from "../parts/row-menu.tsx";
import { Section } from "../parts/section.tsx";
import { shortId } from "../parts/short-id.ts";
import { Time } from "../parts/time.tsx";
import { WebhookDeliveries } from "./webhook-deliveries.tsx";
import { ChangeDialog, ChangeUrlButton } from "./webhook-form.tsx";
import { Events, NewSecret } from "./webhook-list.tsx";
import type { Webhook } from "./webhook-death.ts";
import { countWaiting, DeliveryRate, WebhookState, WebhookTrouble } from "./webhook-state.tsx";

const changes = [keyOf(listWebhooks), keyOf(listWebhookDeliveries)];

export function WebhookPage() {
  const { webhookId = "" } = useParams();
  const { may } = useSignedIn();
  const webhooks = useRead(listWebhooks, { query: { account: undefined } }, { everyMs: OFTEN_MS });
  const webhook = webhooks.data?.items.find(({ id }) => id === webhookId);
  return (
    <>
      <PageHead
        title={webhook?.url ?? "Webhook endpoint"}
        windowTitle="Webhook endpoint"
        about={
          webhook && (
            // Announced when it changes.
            <output>
              <WebhookState of={webhook} />
            </output>
          )
        }
      >
        {webhook && <WebhookActions of={webhook} />}
      </PageHead>
      <Reading of={webhooks}>
        {() =>
          webhook === undefined ? (
            <EmptyState title="No such endpoint">It may have been deleted.</EmptyState>
          ) : (
            <Stack gap="xl">
              <WebhookTrouble
                of={webhook}
                enable={may("webhook.manage") && <EnableButton webhook={webhook} />}
                change={
                  may("webhook.manage") && !webhook.is_from_document && <ChangeUrlButton webhook={webhook} />
                }
              />
              <Section title="About">
                <About webhook={webhook} />
              </Section>
              <WebhookDeliveries of={webhook} />
            </Stack>
          )
        }
      </Reading>
    </>
  );
}

function About({ webhook }: { readonly webhook: Webhook }) {
  const { previous_secret_ends_at: endsAt } = webhook;
  return (
    <Facts
      of={[
        ["ID", <Copyable key="id" text={webhook.id} shown={shortId(webhook.id)} name="the ID" />],
        ["Account", webhook.account ?? "none: it tells operators what needs a person"],
        ["Events", <Events key="events" of={webhook.events} />],
        ["Description", webhook.description || null],
        ["Deliveries", <DeliveryRate key="rate" of={webhook} />],
        [
          "Last delivered",
          webhook.last_delivered_at === null ? "never" : <Time key="last" at={webhook.last_delivered_at} />,
        ],
        ["Events that wait", webhook.waiting === 0 ? null : countWaiting(webhook)],
        ["Created", <Time key="created" at={webhook.created_at} />],
        ["Managed by", webhook.is_from_document ? "the account's document" : null],
        [
          "Previous secret",
          endsAt && (
            <>
              signs, too, until <Time at={endsAt} isExact />
            </>
          ),
        ],
      ]}
    />
  );
}

/** A test first; the rest is behind one button. */
function WebhookActions({ of: webhook }: { readonly of: Webhook }) {
  const { may } = useSignedIn();
  const [secret, setSecret] = useState<string | null>(null);
  const isEnabled = webhook.disabled_at === null;
  const isOwn = !webhook.is_from_document;
  const dialogOf =
    (Dialog: (props: DialogProps) => ReactNode): RowAction["dialog"] =>
    (state) => <Dialog webhook={webhook} {...state} onMade={setSecret} />;
  const actions: readonly RowAction[] = [
    ...(isOwn ? [{ label: "Change", dialog: dialogOf(ChangeDialog) }] : []),
    { label: "Rotate secret", dialog: dialogOf(RotateDialog) },
    ...(isEnabled ? [{ label: "Disable", dialog: dialogOf(DisableDialog) }] : []),
    ...(isOwn ? [{ label: "Delete", isDanger: true, dialog: dialogOf(DeleteDialog) }] : []),
  ];
  return (
    <>
      {may("webhook.resend") && isEnabled && webhook.has_secret && <PingButton id={webhook.id} />}
      {may("webhook.manage") && <RowMenu of="this endpoint" actions={actions} />}
      <NewSecret title="New signing secret" secret={secret} onKept={() => setSecret(null)} />
    </>
  );
}

interface DialogProps {
  readonly webhook: Webhook;
  readonly isOpen: boolean;
  readonly onClose: () => void;
  readonly onMade: (secret: string) => void;
}

function PingButton({ id }: { readonly id: string }) {
  const pinging = useOperation(pingWebhook, {
    changes,
    onDone: () => notifications.show({ message: "A ping will be sent. Its delivery is listed below." }),
  });
  return (
    <Button
      size="xs"
      variant="default"
      loading={pinging.isPending}
      onClick={() => pinging.mutate({ params: { webhookId: id } })}
    >
      Send a ping
    </Button>
  );
}

/** How long the old secret signs, too. */
const OVERLAPS = [
  { value: "86400", label: "1 day" },
  { value: "604800", label: "7 days" },
  { value: "3600", label: "1 hour" },
  { value: "0", label: "Not at all" },
];

function RotateDialog({ webhook, isOpen, onClose, onMade }: DialogProps) {
  const [overlap, setOverlap] = useState(OVERLAPS[0]?.value ?? "0");
  const rotating = useOperation(rotateWebhook, {
    changes,
    onDone: (made) => {
      onClose();
      onMade(made.secret);
    },
  });
  return (
    <Confirm
      isOpen={isOpen}
      title="Rotate the signing secret?"
      action="Rotate"
      isBusy={rotating.isPending}
      failure={rotating.failure}
      onConfirm={() =>
        rotating.mutate({ params: { webhookId: webhook.id }, body: { overlap_seconds: Number(overlap) } })
      }
      onClose={onClose}
    >
      <Stack gap="md">
        <NativeSelect
          label="Sign with the old secret, too, for"
          value={overlap}
          onChange={(event) => setOverlap(event.currentTarget.value)}
          data={OVERLAPS}
        />
        <Text size="sm">
          The new secret is shown once.{" "}
          {overlap === "0"
            ? "A receiver that still verifies with the old one refuses what comes from now on."
            : "Until the time is over each request has two signatures, so the receiver can change at any moment."}
        </Text>
      </Stack>
    </Confirm>
  );
}

function DisableDialog({ webhook: { id, url }, ...state }: DialogProps) {
  return (
    <AskDialog
      {...state}
      to={disableWebhook}
      input={{ params: { webhookId: id } }}
      changes={changes}
      title="Disable this endpoint?"
      action="Disable"
      done="The endpoint was disabled."
    >
      New events are not kept for <b>{url}</b>. Undelivered events wait until it is enabled.
    </AskDialog>
  );
}

function EnableButton({ webhook: { id, url, waiting } }: { readonly webhook: Webhook }) {
  return (
    <AskButton
      to={enableWebhook}
      input={{ params: { webhookId: id } }}
      changes={changes}
      label="Enable"
      title="Enable this endpoint?"
      action="Enable"
      isHarmless
      done="The endpoint was enabled. Send a ping to see whether it answers."
    >
      <b>{url}</b> gets events again
      {waiting > 0 && <>, and first the {waiting === 1 ? "one that waits" : `${waiting} that wait`} for it</>}
      . If it still fails, it is disabled again.
    </AskButton>
  );
}

function DeleteDialog({ webhook: { id, url }, ...state }: DialogProps) {
  const [, navigate] = useLocation();
  return (
    <AskDialog
      {...state}
      to={deleteWebhook}
      input={{ params: { webhookId: id } }}
      changes={changes}
      title="Delete this endpoint permanently?"
      action="Delete permanently"
      done="The endpoint was deleted."
      onDone={() => navigate("/webhooks")}
    >
      <b>{url}</b> gets nothing from now on. Its secret and the log of its deliveries are deleted, too.
    </AskDialog>
  );
}
