import { Button, Code, Group, Modal, Stack, Text } from "@mantine/core";
import { notifications } from "@mantine/notifications";
import { useState } from "react";
import { listWebhookDeliveries, readWebhookDelivery, resendWebhook } from "../api/operations.ts";
import { keyOf, OFTEN_MS, useOperation, useRead, useSignedIn } from "../api/queries.ts";
import type { AnswerOf } from "../api/request.ts";
import { DataTable } from "../parts/data-table.tsx";
import { FailureNote } from "../parts/failure-note.tsx";
import { Reading } from "../parts/reading.tsx";
import { Time } from "../parts/time.tsx";
import type { Webhook } from "./webhook-death.ts";

export type Delivery = AnswerOf<typeof listWebhookDeliveries>["items"][number];
type Attempt = AnswerOf<typeof readWebhookDelivery>["attempts"][number];

/** A delivery's content and its attempts, on demand; from there it is sent again. */
export function ShowDelivery(props: { readonly webhook: Webhook; readonly delivery: Delivery }) {
  const [isOpen, setIsOpen] = useState(false);
  const { type, event_id: id } = props.delivery;
  return (
    <>
      <Button size="xs" variant="default" aria-label={`Show ${type} ${id}`} onClick={() => setIsOpen(true)}>
        Show
      </Button>
      <Modal
        opened={isOpen}
        onClose={() => setIsOpen(false)}
        title={type}
        size="lg"
        closeButtonProps={{ "aria-label": "Close" }}
      >
        {isOpen && <DeliveryDetail {...props} />}
      </Modal>
    </>
  );
}

function DeliveryDetail({ webhook, delivery }: { readonly webhook: Webhook; readonly delivery: Delivery }) {
  const { may } = useSignedIn();
  const params = { webhookId: webhook.id, eventId: delivery.event_id };
  const detail = useRead(readWebhookDelivery, { params }, { everyMs: OFTEN_MS });
  const resending = useOperation(resendWebhook, {
    changes: [keyOf(listWebhookDeliveries), keyOf(readWebhookDelivery)],
    onDone: () => notifications.show({ message: "It will be sent again, under the same ID." }),
  });
  return (
    <Reading of={detail}>
      {({ body, attempts, event_id: id }) => (
        <Stack gap="md">
          <Text size="sm" c="dimmed" className="any-break">
            Sent as POST with <code>webhook-id: {id}</code>, the time, and a signature for each attempt, which
            are not kept.
          </Text>
          <Code block className="any-break" tabIndex={0} aria-label="Content">
            {body === null
              ? "It can't be rendered: see the service's log."
              : JSON.stringify(JSON.parse(body), null, 2)}
          </Code>
          {attempts.length === 0 ? (
            <Text size="sm">There was no attempt yet.</Text>
          ) : (
            <Attempts of={attempts} />
          )}
          {resending.failure && <FailureNote error={resending.failure} />}
          {may("webhook.resend") && webhook.disabled_at === null && (
            <Group justify="flex-end">
              <Button
                variant={delivery.state === "delivered" ? "default" : "filled"}
                loading={resending.isPending}
                onClick={() => resending.mutate({ params })}
              >
                Send again
              </Button>
            </Group>
          )}
        </Stack>
      )}
    </Reading>
  );
}

function Attempts({ of: attempts }: { readonly of: readonly Attempt[] }) {
  return (
    <DataTable
      name="Attempts"
      rows={attempts}
      keyOf={({ number }) => String(number)}
      columns={[
        { title: "Attempt", cell: ({ number }) => number },
        { title: "Answer", cell: (attempt) => <Answer of={attempt} /> },
        {
          title: "Time",
          cell: ({ began_at: at, duration_ms: ms }) => (
            <>
              <Time at={at} />
              <Text size="xs" c="dimmed">
                {ms} ms
              </Text>
            </>
          ),
        },
      ]}
    />
  );
}

function Answer({ of: { status, failure, answer } }: { readonly of: Attempt }) {
  if (status === null) return failure;
  return (
    <>
      {status}
      {answer !== "" && (
        <Text size="xs" c="dimmed" lineClamp={3}>
          {answer}
        </Text>
      )}
    </>
  );
}
