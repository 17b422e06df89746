import { Type, type Static } from "typebox";
import { answerKeys } from "#answers/expectation.ts";
import { extractKeys } from "#answers/extract.ts";
import { submitSchema } from "#answers/submit.ts";
import { EXPRESSION, TEMPLATE } from "#domain/expression.ts";
import { HTTP_METHODS } from "#domain/http-methods.ts";
import { limits } from "#domain/limits.ts";

const closed = { additionalProperties: false } as const;

const request = Type.Object(
  {
    method: Type.Optional(Type.Enum([...HTTP_METHODS], { description: "GET unless given." })),
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
        description: "The body, as an HTML form sends it.",
      }),
    ),
    text: Type.Optional(Type.String({ [TEMPLATE]: "login", description: "The body, as it is." })),
  },
  { ...closed, description: "The request that is sent." },
);

const expect = Type.Object(
  {
    ...answerKeys("login-response"),
    status: Type.Optional(
      Type.Array(Type.Integer({ minimum: 200, maximum: 599 }), {
        minItems: 1,
        description: "200 to 299 unless given.",
      }),
    ),
  },
  { ...closed, description: "What the answer must be, or the login has failed." },
);

const extract = Type.Object(
  {
    ...extractKeys("login-response"),
    cookie: Type.Optional(Type.String({ minLength: 1, description: "A cookie of the session." })),
    secret: Type.Optional(
      Type.Boolean({
        description:
          "Unless false, nodes see a handle wherever a target repeats the value, and results `[REDACTED]`; false for what stands in the data, such as a tenant's id.",
      }),
    ),
  },
  closed,
);

const submit = submitSchema("login", "Sends a form of the page before, with its hidden inputs.");

const step = Type.Object(
  {
    when: Type.Optional(
      Type.String({
        minLength: 1,
        [EXPRESSION]: "login",
        description: "The step is skipped unless this is true.",
      }),
    ),
    request: Type.Optional(request),
    submit: Type.Optional(submit),
    follow: Type.Optional(
      Type.Boolean({ description: "Whether redirects are followed; false unless given." }),
    ),
    extract: Type.Optional(
      Type.Record(Type.String(), extract, { description: "Variable name to where its value is found." }),
    ),
    expect: Type.Optional(expect),
  },
  closed,
);

/** Of every login type that the target can be asked about. */
export const checkKeys = {
  check: Type.Optional(
    Type.Object(
      { request, expect: Type.Optional(expect) },
      {
        ...closed,
        description:
          "Sent when the login is done: tells whether the target takes it. Also how a cached session is tested, and what a test login sends.",
      },
    ),
  ),
};

export const httpSchema = Type.Object(
  {
    steps: Type.Array(step, {
      minItems: 1,
      maxItems: limits.loginStepsMax,
      description: "What is done, in this order.",
    }),
    ...checkKeys,
    session: Type.Optional(
      Type.Object(
        {
          headers: Type.Record(Type.String(), Type.String(), {
            minProperties: 1,
            [TEMPLATE]: "login",
            description: "Go along with every request, besides the cookies.",
          }),
        },
        { ...closed, description: "What later requests carry besides the cookies." },
      ),
    ),
  },
  closed,
);

/** What is in force may have more steps than `apply` takes today. */
export const keptHttpSchema = Type.Object(
  { ...httpSchema.properties, steps: Type.Array(step, { minItems: 1 }) },
  closed,
);

export type HttpLogin = Static<typeof httpSchema>;
export type CheckConfig = NonNullable<HttpLogin["check"]>;
export type RequestConfig = Static<typeof request>;
export type ExpectConfig = Static<typeof expect>;
export type StepConfig = Static<typeof step>;
