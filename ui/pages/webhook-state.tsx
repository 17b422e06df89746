import { List, Text } from "@mantine/core";
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

/** Why an endpoint gets nothing, and what helps (`children`); nothing where all is well. */
export function WebhookTrouble({
  of: webhook,
  children,
}: {
  readonly of: Webhook;
  readonly children: ReactNode;
}) {
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
        {reason !== "operator" && "Repair the receiver first, then enable the endpoint."}
        <List size="sm" my="xs">
          <List.Item>
            Events that happened before it was disabled wait, and are sent once it is enabled.
          </List.Item>
          <List.Item>
            Events that happen while it is disabled are not kept for it, and are lost to it.
          </List.Item>
        </List>
        {children}
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
