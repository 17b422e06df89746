import type { TSchema } from "typebox";
import { DOCUMENT_URL } from "#api/openapi-routes.ts";
import { errorBody } from "#contract/error.ts";
import { COMMON_FAILURES } from "#contract/failures.ts";
import type { Answer, Failure, Media, Operation, Parameter, ResponseHeader } from "#contract/operation.ts";
import { OPERATIONS } from "./public-api/operations.ts";
import { WEBHOOK_EVENTS, type DescribedEvent } from "./public-api/webhook-events.ts";
import { blueprintKey, idempotencyKey, prefer, RESPONSE_HEADERS, runId } from "#contract/parameters.ts";
import { assert } from "#lib/assert.ts";
import { Type } from "#lib/type.ts";
import { sdkSamples } from "./sdk-samples.ts";
import type {
  MediaObject,
  OpenApiDocument,
  OperationObject,
  ParameterObject,
  PathItem,
  Reference,
  ResponseObject,
  SchemaObject,
  WebhookItem,
} from "./openapi-types.ts";

/** Parameters of several operations, each a component. */
const SHARED_PARAMETERS: Readonly<Record<string, Parameter>> = {
  IdempotencyKey: idempotencyKey,
  Prefer: prefer,
  BlueprintKey: blueprintKey,
  RunId: runId,
};

/** The names of the common failures in the components. */
const COMMON_NAMES: Readonly<Record<string, string>> = {
  401: "Unauthenticated",
  403: "Forbidden",
  422: "Invalid",
  429: "RateLimited",
  431: "HeadersTooLarge",
  500: "Unexpected",
  503: "Unavailable",
  default: "Malformed",
};

const DESCRIPTION = `Connect an end user's third-party account through a hosted form, then run configured workflows (Blueprints) against it.

- Every request carries the account's API key: \`Authorization: Bearer <API_KEY>\`.
- Every failure has the single top-level key \`error\`; branch on its \`type\` and on \`details[].code\`.
- Requests that change something take an \`Idempotency-Key\`; for 24 hours, a retry with the same key and body returns the first answer.
- Timestamps are UTC with milliseconds. Ids are opaque, with a prefix.
- \`status\`, \`progress_step\` and a run's \`error.code\` are open string sets: tolerate unknown values.`;

const TAGS: OpenApiDocument["tags"] = [
  { name: "Credential sessions", description: "Hosted forms that collect an end user's credentials." },
  {
    name: "Embedded credential sessions",
    description: "Frames in your own pages that collect an end user's credentials.",
  },
  { name: "Credentials", description: "Vaulted credentials. Their values are never returned." },
  { name: "Blueprints", description: "Workflows that the operator has configured." },
  { name: "Runs", description: "Executions of a Blueprint: their status and their results." },
  { name: "Events", description: "What happens in the account, as webhooks tell it." },
  { name: "Schedules", description: "Runs that begin by the clock." },
  { name: "Test mode", description: "The clock of a test account; only for keys of test mode." },
  { name: "Health", description: "Outside the base URL, without an API key." },
];

/** The OpenAPI document of a service that is reached at `publicUrl` (without a trailing slash). */
export function openApiDocument(publicUrl: string = DOCUMENT_URL): OpenApiDocument {
  return writeDocument({
    title: "Latchkey API",
    summary: "Credential vault and Blueprint run service",
    description: DESCRIPTION,
    baseUrl: `${publicUrl}/api/v1`,
    publicUrl,
    tags: TAGS,
    operations: OPERATIONS,
    sharedParameters: SHARED_PARAMETERS,
    commonFailures: COMMON_FAILURES,
    headers: Object.keys(RESPONSE_HEADERS) as ResponseHeader[],
    isCounted: true,
    security: {
      apiKey: {
        type: "http",
        scheme: "bearer",
        description: "An API key of the account, created by the operator.",
      },
    },
    areOpenOutside: true,
    samplesOf: sdkSamples,
    webhooks: WEBHOOK_EVENTS,
  });
}

/** The parts of an API's document. */
export interface DocumentParts {
  readonly title: string;
  readonly summary: string;
  readonly description: string;
  readonly baseUrl: string;
  readonly publicUrl: string;
  readonly tags: OpenApiDocument["tags"];
  readonly operations: readonly Operation[];
  /** Parameters of several operations, each a component. */
  readonly sharedParameters: Readonly<Record<string, Parameter>>;
  readonly commonFailures: readonly Failure[];
  readonly headers: readonly ResponseHeader[];
  /** Whether answers have rate limit headers. */
  readonly isCounted: boolean;
  /** Security schemes by name; each suffices. */
  readonly security: Readonly<Record<string, unknown>>;
  /** Whether operations without authentication are outside the base URL, and without the common failures. */
  readonly areOpenOutside: boolean;
  /** Samples of an operation, beside its commands. */
  readonly samplesOf: (operation: Operation) => OperationObject["x-codeSamples"];
  /** The requests that the service sends. */
  readonly webhooks?: readonly DescribedEvent[];
}

export function writeDocument(parts: DocumentParts): OpenApiDocument {
  const schemas = new Map<string, SchemaObject>();
  const outside = [{ url: parts.publicUrl, description: "Outside the versioned API." }];
  const paths: Record<string, PathItem> = {};
  for (const operation of parts.operations) {
    paths[operation.path] = {
      ...(operation.isOpen && parts.areOpenOutside ? { servers: outside } : {}),
      ...paths[operation.path],
      [operation.method]: describeOperation(parts, schemas, operation),
    };
  }
  const webhooks = parts.webhooks?.map((event) => [event.type, describeEvent(schemas, event)] as const);
  const responses = parts.commonFailures.map((failure): [string, ResponseObject] => [
    commonName(failure),
    describeFailure(parts, schemas, failure),
  ]);
  return {
    openapi: "3.1.1",
    info: {
      title: parts.title,
      // Spec, Versioning.
      version: "1.0.0",
      summary: parts.summary,
      description: parts.description,
      license: { name: "Apache-2.0", identifier: "Apache-2.0" },
    },
    servers: [{ url: parts.baseUrl, description: "This service." }],
    security: Object.keys(parts.security).map((name) => ({ [name]: [] })),
    tags: parts.tags,
    paths,
    ...(webhooks === undefined ? {} : { webhooks: Object.fromEntries(webhooks) }),
    components: {
      schemas: Object.fromEntries([...schemas].toSorted(([a], [b]) => (a < b ? -1 : 1))),
      responses: Object.fromEntries(responses),
      parameters: Object.fromEntries(
        Object.entries(parts.sharedParameters).map(([name, parameter]) => [
          name,
          describeParameter(schemas, parameter),
        ]),
      ),
      headers: Object.fromEntries(
        Object.entries(RESPONSE_HEADERS)
          .filter(([name]) => parts.headers.includes(name as ResponseHeader))
          .map(([name, { schema, ...header }]) => [
            name,
            { ...header, schema: describeSchema(schemas, schema) },
          ]),
      ),
      securitySchemes: parts.security,
    },
  };
}

const commonName = (failure: Failure): string => {
  const name = COMMON_NAMES[failure.status];
  assert(name !== undefined, "a common failure has a name");
  return name;
};

const reference = (kind: string, name: string): Reference => ({ $ref: `#/components/${kind}/${name}` });

type Schemas = Map<string, SchemaObject>;

/** A schema as plain JSON; every one with a title becomes a component of that name. */
function describeSchema(schemas: Schemas, schema: TSchema): SchemaObject {
  const visit = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(visit);
    if (typeof value !== "object" || value === null) return value;
    const entries = Object.entries(value);
    const plain = Object.fromEntries(
      entries.map(([key, item]) => [key, key === "examples" ? item : visit(item)]),
    ) as SchemaObject;
    if (!("title" in plain) || typeof plain.title !== "string") return plain;
    const known = schemas.get(plain.title);
    assert(
      known === undefined || JSON.stringify(known) === JSON.stringify(plain),
      `one schema is called ${plain.title}`,
    );
    schemas.set(plain.title, plain);
    return reference("schemas", plain.title);
  };
  return visit(schema) as SchemaObject;
}

function describeMedia(
  schemas: Schemas,
  content: Readonly<Record<string, Media>>,
): Readonly<Record<string, MediaObject>> {
  return Object.fromEntries(
    Object.entries(content).map(([type, { schema, examples }]) => [
      type,
      {
        schema: describeSchema(schemas, schema),
        examples: Object.fromEntries(Object.entries(examples).map(([name, value]) => [name, { value }])),
      },
    ]),
  );
}

function describeParameter(schemas: Schemas, parameter: Parameter): ParameterObject {
  const { schema, example, ...rest } = parameter;
  return {
    ...rest,
    schema: describeSchema(schemas, schema),
    ...(example === undefined ? {} : { example }),
  };
}

/** The headers of Standard Webhooks. */
const WEBHOOK_HEADERS: readonly Parameter[] = (
  [
    ["webhook-id", "The event's id, the same in each attempt.", "msg_019fb2c4d5e63a1f0c9b8d7e6a5f4c3b"],
    ["webhook-timestamp", "The time of the attempt, in seconds since 1970.", "1795428000"],
    [
      "webhook-signature",
      "Signatures `v1,…`, separated by spaces.",
      "v1,K5oZfzN95Z9UVu1EsfQmfVNQhnkZ2pj9o9NDN/H/pI4=",
    ],
  ] as const
).map(([name, description, example]) => ({
  name,
  in: "header",
  required: true,
  description,
  schema: Type.String(),
  example,
}));

function describeEvent(schemas: Schemas, event: DescribedEvent): WebhookItem {
  return {
    post: {
      operationId: event.type,
      summary: event.summary,
      description: "Signed by [Standard Webhooks](https://www.standardwebhooks.com).",
      security: [],
      parameters: WEBHOOK_HEADERS.map((header) => describeParameter(schemas, header)),
      requestBody: {
        required: true,
        content: describeMedia(schemas, {
          "application/json": { schema: event.schema, examples: { event: event.example } },
        }),
      },
      responses: { "2XX": { description: "The event was received. Any other answer is tried again." } },
    },
  };
}

/** Decided before the API key's allowance is known. */
const BEFORE_RATE_LIMIT: readonly Failure["status"][] = [401, 431, "default"];

/** Headers of every response: docs/api.md#in-general and docs/api.md#rate-limits. */
function headersOf(
  own: readonly ResponseHeader[],
  isCounted: boolean,
): NonNullable<ResponseObject["headers"]> {
  const counted = isCounted ? (["RateLimit", "RateLimit-Policy"] as const) : [];
  const names = ["X-Request-Id", "Cache-Control", ...counted, ...own] as const;
  return Object.fromEntries(names.map((name) => [name, reference("headers", name)]));
}

function describeAnswer(schemas: Schemas, answer: Answer, isCounted: boolean): ResponseObject {
  return {
    description: answer.description,
    headers: headersOf(answer.headers ?? [], isCounted),
    ...(answer.content === undefined ? {} : { content: describeMedia(schemas, answer.content) }),
  };
}

function describeFailure(parts: DocumentParts, schemas: Schemas, failure: Failure): ResponseObject {
  return {
    description: failure.description,
    headers: headersOf(failure.headers ?? [], parts.isCounted && !BEFORE_RATE_LIMIT.includes(failure.status)),
    content: describeMedia(schemas, {
      "application/json": { schema: errorBody, examples: failure.examples },
    }),
  };
}

function describeOperation(parts: DocumentParts, schemas: Schemas, operation: Operation): OperationObject {
  const shared = Object.entries(parts.sharedParameters);
  const parameters = operation.parameters.map((parameter) => {
    const component = shared.find(([, candidate]) => candidate === parameter);
    return component ? reference("parameters", component[0]) : describeParameter(schemas, parameter);
  });
  const responses: [Failure["status"], ResponseObject | Reference][] = [
    ...operation.answers.map((answer): [number, ResponseObject] => [
      answer.status,
      describeAnswer(schemas, answer, parts.isCounted && !operation.isOpen),
    ]),
    ...operation.failures.map((failure): [Failure["status"], ResponseObject] => [
      failure.status,
      describeFailure(parts, schemas, failure),
    ]),
  ];
  if (!operation.isOpen || !parts.areOpenOutside) {
    // An operation may describe a common failure in more detail.
    for (const failure of parts.commonFailures) {
      if (!operation.failures.some(({ status }) => status === failure.status))
        responses.push([failure.status, reference("responses", commonName(failure))]);
    }
  }
  return {
    operationId: operation.id,
    tags: [operation.tag],
    summary: operation.summary,
    description: operation.description,
    ...(operation.isOpen ? { security: [] } : {}),
    ...(parameters.length === 0 ? {} : { parameters }),
    ...(operation.body === undefined
      ? {}
      : {
          requestBody: {
            required: operation.body.required,
            content: describeMedia(schemas, operation.body.content),
          },
        }),
    responses: Object.fromEntries(responses),
    "x-codeSamples": [
      ...Object.entries(operation.curl).map(([label, source]) => ({ lang: "Shell", label, source })),
      ...parts.samplesOf(operation),
    ],
  };
}
