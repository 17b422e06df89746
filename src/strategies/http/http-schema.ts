import type { Static } from "typebox";
import { Type } from "#lib/type.ts";
import { answerKeys } from "#answers/expectation.ts";
import { extractKeys } from "#answers/extract.ts";
import { submitSchema } from "#answers/submit.ts";
import { EXPRESSION, TEMPLATE } from "#domain/expression.ts";
import { HTTP_METHODS } from "#domain/http-methods.ts";
import { limits } from "#domain/limits.ts";

const closed = { additionalProperties: false } as const;

const request = Type.Object(
  {
    method: Type.Optional(Type.Enum([...HTTP_METHODS], { description: "Default: GET." })),
    url: Type.String({
      minLength: 1,
      [TEMPLATE]: "login",
      description: "Absolute, or relative to the first of the strategy's hosts.",
    }),
    query: Type.Optional(
      Type.Record(Type.String(), Type.Unknown(), { [TEMPLATE]: "login", description: "Query parameters." }),
    ),
    headers: Type.Optional(
      Type.Record(Type.String(), Type.String(), { [TEMPLATE]: "login", description: "Headers." }),
    ),
    json: Type.Optional(Type.Unknown({ [TEMPLATE]: "login", description: "The body, as JSON." })),
    form: Type.Optional(
      Type.Record(Type.String(), Type.Unknown(), {
        [TEMPLATE]: "login",
        description: "The body, encoded like an HTML form.",
      }),
    ),
    text: Type.Optional(Type.String({ [TEMPLATE]: "login", description: "The body, unchanged." })),
  },
  { ...closed, description: "The request that is sent." },
);

const expect = Type.Object(
  {
    ...answerKeys("login-response"),
    status: Type.Optional(
      Type.Array(Type.Integer({ minimum: 200, maximum: 599 }), {
        minItems: 1,
        description: "Default: 200 to 299.",
      }),
    ),
  },
  { ...closed, description: "Conditions for the answer. If one is not met, the login has failed." },
);

const extract = Type.Object(
  {
    ...extractKeys("login-response"),
    cookie: Type.Optional(Type.String({ minLength: 1, description: "A cookie of the session." })),
    secret: Type.Optional(
      Type.Boolean({
        description:
          "Default: true. Nodes see a handle wherever a target repeats the value, and results show `[REDACTED]`. Use false for values that occur in the data, such as a tenant's id.",
      }),
    ),
  },
  closed,
);

const submit = submitSchema("login", "Submits a form of the previous page, with its hidden inputs.");

const step = Type.Object(
  {
    when: Type.Optional(
      Type.String({
        minLength: 1,
        [EXPRESSION]: "login",
        description: "A condition: the step is skipped unless it is true.",
      }),
    ),
    request: Type.Optional(request),
    submit: Type.Optional(submit),
    follow: Type.Optional(Type.Boolean({ description: "Whether redirects are followed. Default: false." })),
    extract: Type.Optional(
      Type.Record(Type.String(), extract, {
        description: "Variables to extract: each name, and where its value is found.",
      }),
    ),
    expect: Type.Optional(expect),
  },
  closed,
);

/** A request, and what a good answer to it is. */
export const checkedRequest = { request, expect: Type.Optional(expect) };

/** For every login type whose session the target can check. */
export const checkKeys = {
  check: Type.Optional(
    Type.Object(checkedRequest, {
      ...closed,
      description:
        "A request that is sent after the login, to find out whether the target accepts it. Also used to test a cached session, and by a test login.",
    }),
  ),
};

export const httpSchema = Type.Object(
  {
    steps: Type.Array(step, {
      minItems: 1,
      maxItems: limits.loginStepsMax,
      description: "The steps, in order.",
    }),
    ...checkKeys,
    session: Type.Optional(
      Type.Object(
        {
          headers: Type.Record(Type.String(), Type.String(), {
            minProperties: 1,
            [TEMPLATE]: "login",
            description: "Headers to send with every request, in addition to the cookies.",
          }),
        },
        { ...closed, description: "What later requests send in addition to the cookies." },
      ),
    ),
  },
  closed,
);

/** An applied strategy may have more steps than `apply` accepts today. */
export const keptHttpSchema = Type.Object(
  { ...httpSchema.properties, steps: Type.Array(step, { minItems: 1 }) },
  closed,
);

export type HttpLogin = Static<typeof httpSchema>;
export type CheckConfig = NonNullable<HttpLogin["check"]>;
export type RequestConfig = Static<typeof request>;
export type ExpectConfig = Static<typeof expect>;
export type StepConfig = Static<typeof step>;
