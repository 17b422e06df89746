import { SimpleGrid, Text } from "@mantine/core";
import type { ReactNode } from "react";
import { ENDPOINT_STATE_NAMES as names, endpointState, type EndpointState } from "#domain/labels/webhooks.ts";
import { Note } from "../parts/note.tsx";
import { Mark } from "../parts/run-status.tsx";
import { Time } from "../parts/time.tsx";
import type { Webhook } from "./webhook-death.ts";

const stateOf = (webhook: Webhook): EndpointState =>
  endpointState({
    disabledReason: webhook.disabled_reason,
    failingSince: webhook.failing_since,
    hasSecret: webhook.has_secret,
  });

const TONES: Readonly<Record<EndpointState, string>> = {
  active: "good",
  failing: "waiting",
  without_secret: "waiting",
  disabled_operator: "quiet",
  disabled_gone: "bad",
  disabled_failing: "bad",
};
const SHORT: Readonly<Record<EndpointState, string>> = {
  ...names,
  disabled_gone: "disabled",
  disabled_failing: "disabled",
};
const sentence = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1);

export function WebhookState({ of: webhook }: { readonly of: Webhook }) {
  const state = stateOf(webhook);
  const since = webhook.disabled_at ?? webhook.failing_since;
  return (
    <>
      <Mark tone={TONES[state]}>{sentence(SHORT[state])}</Mark>
      {since !== null && (
        <Text size="xs" c="dimmed" component="div">
          {state === "failing" && "since "}
          <Time at={since} />
        </Text>
      )}
    </>
  );
}

/** Counting stops there. */
const WAITING_MAX = 10_000;

export const countWaiting = ({ waiting }: Webhook): string =>
  waiting >= WAITING_MAX ? `${WAITING_MAX.toLocaleString("en")} or more` : waiting.toLocaleString("en");

/** How many of the newest deliveries were made. */
export function DeliveryRate({ of: { recent } }: { readonly of: Webhook }) {
  const ended = recent.delivered + recent.given_up;
  if (ended === 0) return "none has arrived yet";
  if (recent.given_up === 0) return ended === 1 ? "the last one arrived" : `all of the last ${ended} arrived`;
  return <Mark tone="bad">{`${recent.given_up} of the last ${ended} given up`}</Mark>;
}

/** Why an endpoint gets nothing, and what helps; nothing where all is well. */
export function WebhookTrouble(props: {
  readonly of: Webhook;
  /** What enables it, and what gives it another URL, for those who may. */
  readonly enable: ReactNode;
  readonly change: ReactNode;
}) {
  const webhook = props.of;
  const { disabled_at: at, disabled_reason: reason, failing_since: since } = webhook;
  if (at !== null && reason !== null)
    return (
      <Note
        tone={reason === "operator" ? "quiet" : "bad"}
        title={
          reason === "operator"
            ? "This endpoint is disabled"
            : "This endpoint was disabled, because it failed"
        }
      >
        {reason === "gone" && (
          <>
            It answered 410 (gone) <Time at={at} />.{" "}
          </>
        )}
        {reason === "failing" && (
          <>
            Every attempt of five days failed, until <Time at={at} />.{" "}
          </>
        )}
        <Waiting of={webhook} /> Events that have happened since are not recorded for it, so nobody can count
        or resend them: read the runs since then with the API.
        <SimpleGrid cols={{ base: 1, sm: reason === "operator" ? 1 : 2 }} mt="sm" spacing="lg">
          {reason !== "operator" && (
            <div>
              <Text size="sm" fw={600}>
                The address has moved, or was taken away
              </Text>
              <Text size="sm" mb="xs">
                Give it the new URL, then enable it. If nobody needs its events any more, delete it.
              </Text>
              {props.change}
            </div>
          )}
          <div>
            <Text size="sm" fw={600}>
              {reason === "operator" ? "It is wanted again" : "The receiver was repaired"}
            </Text>
            <Text size="sm" mb="xs">
              Enable it, then send a ping to see whether it answers.
            </Text>
            {props.enable}
          </div>
        </SimpleGrid>
      </Note>
    );
  if (!webhook.has_secret)
    return (
      <Note tone="waiting" title="This endpoint has no signing secret yet">
        It comes from the account&apos;s document. Its events wait until &quot;Rotate secret&quot; has made
        one.
      </Note>
    );
  if (since === null) return null;
  return (
    <Note tone="waiting" title="Every attempt fails">
      None has succeeded since <Time at={since} />. After five days the endpoint is disabled. The deliveries
      below show its answers.
    </Note>
  );
}

function Waiting({ of: webhook }: { readonly of: Webhook }) {
  if (webhook.waiting === 0) return "No event waits for it.";
  if (webhook.waiting === 1) return "1 event from before waits, and is sent once it is enabled.";
  return `${countWaiting(webhook)} events from before wait, and are sent once it is enabled.`;
}
