import type { TSchema } from "typebox";
import { EVENT_TYPES, type EventType } from "#domain/webhook.ts";
import { EXAMPLE, id, strategyId, timestamp } from "#contract/fields.ts";
import { Type } from "#lib/type.ts";
import { running, runStatus } from "./blueprint-runs.ts";
import { completed as completedSession, credentialSession } from "./credential-sessions.ts";
import { completed as completedEmbedded, embeddedSession } from "./embedded-credential-sessions.ts";

/** An event as the document describes it. */
export interface DescribedEvent {
  readonly type: string;
  readonly summary: string;
  readonly schema: TSchema;
  readonly example: object;
}

interface Group {
  readonly title: string;
  readonly description: string;
  /** The beginning of the types. */
  readonly subject: string;
  readonly data: TSchema;
  readonly example: object;
}

const endpointId = Type.String({
  pattern: "^we_",
  description: "The endpoint's id.",
  examples: ["we_0VbbSVh5cVF35tcZuFgx5nlDsaxd"],
});

const GROUPS: readonly Group[] = [
  {
    title: "CredentialSessionEvent",
    description: "What became of a credential session.",
    subject: "credential_session.",
    data: credentialSession,
    example: completedSession,
  },
  {
    title: "EmbeddedCredentialSessionEvent",
    description: "What became of an embedded credential session.",
    subject: "embedded_credential_session.",
    data: embeddedSession,
    example: completedEmbedded,
  },
  {
    title: "CredentialEvent",
    description: "What happened to a credential.",
    subject: "credential.",
    data: Type.Object({ id: id("credential", "The credential's id."), strategy_id: strategyId }),
    example: { id: EXAMPLE.credential, strategy_id: EXAMPLE.strategy },
  },
  {
    title: "RunEvent",
    description: "What happened to a run. Its results are fetched with an API key.",
    subject: "run.",
    data: runStatus,
    example: running,
  },
  {
    title: "EndpointEvent",
    description: "What happened to another endpoint of the account.",
    subject: "webhook.",
    data: Type.Object({
      id: endpointId,
      reason: Type.String({
        description: "`operator`, `gone` (it answered 410) or `failing` (for five days).",
        examples: ["gone"],
      }),
    }),
    example: { id: "we_0VbbSVh5cVF35tcZuFgx5nlDsaxd", reason: "gone" },
  },
  {
    title: "PingEvent",
    description: "A test, sent by an operator.",
    subject: "ping",
    data: Type.Object({ id: endpointId }),
    example: { id: "we_0VbbSVh5cVF35tcZuFgx5nlDsaxd" },
  },
];

const typesOf = ({ subject }: Group): readonly EventType[] =>
  (Object.keys(EVENT_TYPES) as EventType[]).filter((type) => type.startsWith(subject));

const schemaOf = (group: Group): TSchema =>
  Type.Object(
    {
      type: Type.Unsafe<string>({
        type: "string",
        enum: [...typesOf(group)],
        description: "The type of the event.",
      }),
      timestamp: timestamp("When it happened. Events may arrive in any order."),
      data: group.data,
    },
    { title: group.title, description: group.description },
  );

const SCHEMAS = GROUPS.map((group) => [group, schemaOf(group)] as const);

/** Every event, in the order of the groups. */
export const WEBHOOK_EVENTS: readonly DescribedEvent[] = SCHEMAS.flatMap(([group, schema]) =>
  typesOf(group).map((type) => ({
    type,
    summary: EVENT_TYPES[type],
    schema,
    example: { type, timestamp: "2026-11-21T07:10:11.120Z", data: group.example },
  })),
);

/** The union of the events, as the SDKs have it. */
export const WEBHOOK_EVENT = {
  name: "WebhookEvent",
  description: "The body of a webhook, by its type. Ignore types that you do not know: more may be added.",
  choices: GROUPS.map(({ title }) => title),
};
