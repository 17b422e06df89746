import type { TSchema } from "typebox";
import { Type } from "#lib/type.ts";
import { DURATION_PATTERN } from "./duration.ts";
import { REVIEW_STEP_UPS } from "./account.ts";
import { EDITIONS, LATEST_EDITION } from "./edition.ts";
import { hostThrottlesSchema } from "./host-throttle.ts";
import { EXPRESSION } from "./expression.ts";
import { LANGUAGES } from "./language.ts";
import { limits } from "./limits.ts";
import { MILESTONE_PATTERN } from "./run.ts";
import { concurrencySchema } from "./run-group.ts";
import { scheduleSchema } from "./schedule-schema.ts";
import { SAYS, UNBUILT_KEYS } from "./schema-notes.ts";
import { FIELD_TYPES } from "./strategy.ts";
import { SUBSCRIPTIONS } from "./webhook.ts";

/** Upper limits of durations, in milliseconds; a duration must be longer than 0 unless stated otherwise. */
export const configLimits = {
  sessionLifetimeMsMax: 365 * 86_400_000,
  retentionMsMax: 3_650 * 86_400_000,
  runTimeoutMsMax: 7 * 86_400_000,
  nodeTimeoutMsMax: 86_400_000,
  reviewTimeoutMsMax: 365 * 86_400_000,
  cacheMsMax: 30 * 86_400_000,
  lockoutAfterMax: 100,
  coolDownMsMax: 30 * 86_400_000,
  retryDelayMsMax: 3_600_000,
  retryAttemptsMax: 20,
  concurrencyMax: 10_000,
  requestsMax: 1_000_000,
  nodesMax: 200,
  sourcesMax: 50,
  slotsMax: 20,
  metadataMax: 100,
  hostsMax: 50,
  optionsMax: 200,
  descriptionCharactersMax: 2_000,
} as const;

const closed = { additionalProperties: false };
const named = (pattern: string, says: string, more: object = {}) =>
  Type.String({ pattern, [SAYS]: says, ...more });
const text = (description: string, maxLength: number = configLimits.descriptionCharactersMax) =>
  Type.Optional(Type.String({ description, minLength: 1, maxLength }));
/** Text for end users: one for all languages, or one per language. */
const localText = (description: string, maxLength: number = configLimits.descriptionCharactersMax) =>
  Type.Optional(
    Type.Union(
      [
        Type.String({ minLength: 1, maxLength }),
        Type.Object(
          Object.fromEntries(
            LANGUAGES.map((language) => [language, text(`The text in the language ${language}`, maxLength)]),
          ),
          { additionalProperties: false, minProperties: 1 },
        ),
      ],
      { description: `${description}; one text for all languages, or one for each: \`{ en: …, de: … }\`` },
    ),
  );
const duration = (description: string) =>
  Type.Optional(Type.Union([Type.Literal(0), Type.String({ pattern: DURATION_PATTERN })], { description }));
const whole = (description: string, maximum: number, minimum = 1) =>
  Type.Optional(Type.Integer({ description, minimum, maximum }));

const name = text("The display name", limits.nameCharactersMax);
const accountSlug = named(
  "^[a-z0-9][a-z0-9-]{0,62}$",
  "a slug: lower-case letters, digits and `-`, at most 63 characters",
);
const strategyId = named(
  "^strat_[A-Za-z0-9_-]{1,120}$",
  "an id that starts with `strat_`, then letters, digits, `_` and `-`",
);
const blueprintKey = named(
  "^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$",
  "a key of letters, digits, `.`, `_` and `-`, at most 128 characters",
);
const lowerName = (more: object = {}) =>
  named(
    "^[a-z][a-z0-9_]{0,62}$",
    "a name of lower-case letters, digits and `_` that begins with a letter",
    more,
  );
const origins = (description: string) =>
  Type.Optional(Type.Array(Type.String(), { description, maxItems: configLimits.hostsMax }));
const insecure = Type.Optional(
  Type.Boolean({
    description:
      "true: `hosts` may be public and `http://`, where anyone on the network path can read the traffic",
  }),
);
const retired = Type.Optional(Type.Boolean({ description: "true: accepts no new sessions or triggers" }));

const edition = Type.Optional(
  Type.Enum([...EDITIONS], {
    description: `The edition of the keys' meaning; default ${LATEST_EDITION}, the latest`,
  }),
);

const logoUrl = (what: string) =>
  Type.Optional(
    Type.String({
      description: `${what}, as a \`data:\` URI (PNG, JPEG or WebP, at most 32 KiB)`,
      minLength: 1,
    }),
  );

/** docs/accounts.md describes the keys. */
export const accountSchema = Type.Object(
  {
    account: accountSlug,
    name,
    allowed_origins: origins("Origins that a `return_url` may have"),
    embed_origins: origins("Origins of pages that may frame the embedded flow; default allowed_origins"),
    session_lifetime: duration("How long a credential session lasts; default 7d"),
    retention: duration("How long the data of ended runs is kept; default 30d"),
    concurrency: whole(
      "Runs of this account that may execute at the same time; default 50",
      configLimits.concurrencyMax,
    ),
    rate_limit: Type.Optional(
      Type.Union(
        [
          Type.Literal("off"),
          Type.Object(
            {
              per_second: whole("Requests per second; default 500", configLimits.requestsMax),
              burst: whole("Requests allowed in a burst; default 1000", configLimits.requestsMax),
            },
            closed,
          ),
        ],
        { description: "The rate limit of each API key, or `off`. Polling is allowed ten times as much" },
      ),
    ),
    review_step_up: Type.Optional(
      Type.Enum([...REVIEW_STEP_UPS], {
        description:
          "Whether approving a review requires a second factor from the last 30 minutes; default before_writes: only where the Blueprint may write after it",
      }),
    ),
    two_person: Type.Optional(
      Type.Boolean({
        description:
          "true: widening `hosts` or any other origin, changing a login, rebinding credentials and turning this off need a second admin",
      }),
    ),
    branding: Type.Optional(
      Type.Object(
        {
          name: text("The name that end users see; default: the account's name", limits.nameCharactersMax),
          logo_url: logoUrl("The logo"),
          accent_color: Type.Optional(
            named("^#[0-9a-fA-F]{6}$", 'a colour like `"#3355ff"`, in quotes', {
              description: "The colour of buttons and links; the contrast is adjusted automatically",
            }),
          ),
          support_url: text("Where end users get help: https:// or mailto:", limits.returnUrlCharactersMax),
        },
        { ...closed, description: "How the account appears on the hosted pages" },
      ),
    ),
    throttle: hostThrottlesSchema,
    webhooks: Type.Optional(
      Type.Array(
        Type.Object(
          {
            url: text("Where events are posted: https://…", limits.webhookUrlCharactersMax),
            events: Type.Optional(
              Type.Array(Type.Enum([...SUBSCRIPTIONS]), {
                minItems: 1,
                uniqueItems: true,
                description: "Types, all types of a subject such as `run.*`, or `*`; default: all",
              }),
            ),
            description: Type.Optional(
              Type.String({ maxLength: limits.webhookDescriptionCharactersMax, description: "For people" }),
            ),
          },
          {
            ...closed,
            [UNBUILT_KEYS]: { secret_env: "`latchkey webhooks rotate` makes the secret and shows it once" },
          },
        ),
        {
          maxItems: limits.webhookEndpointsMax,
          description: "Endpoints that get the account's events, signed",
        },
      ),
    ),
  },
  closed,
);

/** One entry of a strategy's `fields`. */
export const fieldSchema = Type.Object(
  {
    key: lowerName({ description: "The name of the value in the login" }),
    label: localText("The label in the form; default: the key", limits.nameCharactersMax),
    type: Type.Enum([...FIELD_TYPES]),
    required: Type.Optional(Type.Boolean()),
    pattern: text("A regular expression (RE2) that the value must match", 1_000),
    min_length: whole("The minimum number of characters", limits.formValueBytesMax, 0),
    max_length: whole("The maximum number of characters", limits.formValueBytesMax),
    placeholder: localText("The placeholder of the empty control", limits.nameCharactersMax),
    help: localText("The help text below the control"),
    autocomplete: text("The HTML attribute `autocomplete`", limits.nameCharactersMax),
    options: Type.Optional(
      Type.Array(
        Type.Union([
          Type.String({ minLength: 1, maxLength: limits.nameCharactersMax }),
          Type.Object(
            {
              value: Type.String({ minLength: 1, maxLength: limits.nameCharactersMax }),
              label: localText("The label in the form; default: the value", limits.nameCharactersMax),
            },
            closed,
          ),
        ]),
        {
          description: "The choices of a `select`",
          minItems: 1,
          maxItems: configLimits.optionsMax,
        },
      ),
    ),
    secret: Type.Optional(Type.Boolean()),
  },
  closed,
);

/** docs/strategies.md describes the keys. The keys of `login` depend on its type. */
export const strategySchema = Type.Object(
  {
    strategy: strategyId,
    account: accountSlug,
    name: localText("The display name", limits.nameCharactersMax),
    description: localText("Shown on the hosted form"),
    logo_url: logoUrl("The target's logo on the hosted form"),
    hosts: origins("The only origins that may ever receive this credential"),
    insecure,
    fields: Type.Optional(
      Type.Array(Type.Unknown(), {
        description: "the fields of the hosted form",
        minItems: 1,
        maxItems: limits.formFieldsMax,
      }),
    ),
    login: Type.Object({}, { description: "how runs log in, e.g. `{ type: none }`" }),
    verify: Type.Optional(
      Type.Boolean({
        description:
          "Whether a login is tried when an end user submits it; default: when a run first uses it",
      }),
    ),
    concurrency: whole(
      "Runs per credential that may execute at the same time; default unlimited",
      configLimits.concurrencyMax,
    ),
    retired,
    edition,
  },
  closed,
);

/** The keys of `login` that every login type has. */
export const commonLoginKeys = {
  type: Type.String(),
  cache: duration("How long a logged-in session is cached (sealed); default 0: not at all"),
  lockout: Type.Optional(
    Type.Union(
      [
        Type.Literal("off"),
        Type.Object(
          {
            after: whole("Rejected logins in a row; default 2", configLimits.lockoutAfterMax),
            cool_down: duration("How long the credential stays locked; default 1h"),
          },
          closed,
        ),
      ],
      { description: "When to stop trying a credential that the target rejects, or `off`" },
    ),
  ),
} satisfies Record<string, TSchema>;

/** docs/blueprints.md describes the keys. A node has the common keys and those of its type. */
export const blueprintSchema = Type.Object(
  {
    blueprint: blueprintKey,
    account: accountSlug,
    name,
    description: text("Shown to operators"),
    icon: text("Shown by the embedded picker"),
    credentials: Type.Optional(
      Type.Record(
        Type.String({ pattern: "^[A-Za-z][A-Za-z0-9_-]{0,62}$" }),
        Type.Object({ strategy: strategyId }, closed),
        {
          ...closed,
          maxProperties: configLimits.slotsMax,
          [SAYS]: "a slot name: letters, digits, `_` and `-`, beginning with a letter",
        },
      ),
    ),
    metadata: Type.Optional(
      Type.Array(
        Type.Object(
          {
            name: Type.String({ minLength: 1, maxLength: limits.nameCharactersMax }),
            required: Type.Optional(Type.Boolean()),
            label: text("The label in the dashboard", limits.nameCharactersMax),
          },
          closed,
        ),
        { maxItems: configLimits.metadataMax },
      ),
    ),
    hosts: origins("Origins that nodes without a credential may send requests to"),
    insecure,
    timeout: duration("Maximum duration of a run; default 30m"),
    retention: duration("How long the data of ended runs is kept; default the account's"),
    concurrency: concurrencySchema,
    schedules: Type.Optional(
      Type.Array(scheduleSchema, {
        maxItems: limits.documentSchedulesMax,
        description: "When it runs by the clock, and with what",
      }),
    ),
    nodes: Type.Array(Type.Unknown(), { minItems: 1, maxItems: configLimits.nodesMax }),
    retired,
    edition,
  },
  closed,
);

/** The keys that every node may have; `when` is evaluated in the scope "counts". */
export const commonNodeKeys = {
  id: lowerName({ description: "the node's name in other nodes and expressions" }),
  type: Type.String({ description: "the type of the node" }),
  name,
  from: Type.Optional(
    Type.Union(
      [Type.String(), Type.Array(Type.String(), { minItems: 1, maxItems: configLimits.sourcesMax })],
      {
        description: "the id of the node that it reads, or a list of ids",
      },
    ),
  ),
  when: Type.Optional(
    Type.String({
      [EXPRESSION]: "counts",
      minLength: 1,
      description: "a condition: unless it is true, the node is skipped and has no output",
    }),
  ),
  credential: Type.Optional(Type.String({ description: "a slot of `credentials`" })),
  milestone: Type.Optional(
    named(MILESTONE_PATTERN, "a name of lower-case letters, digits and `_` that begins with a letter", {
      description: "shown as `progress_step` while the node runs",
    }),
  ),
  timeout: duration("How long the node may take"),
  retry: Type.Optional(
    Type.Object(
      {
        attempts: whole("The total number of attempts; default 3", configLimits.retryAttemptsMax),
        backoff: Type.Optional(
          Type.Enum(["exponential", "fixed"], {
            description: "How the waiting times grow; default exponential",
          }),
        ),
        initial: duration("Wait before the second attempt; default 500ms"),
        max: duration("Longest wait between attempts; default 5s"),
      },
      { ...closed, description: "How often and when a failed attempt is repeated" },
    ),
  ),
} satisfies Record<string, TSchema>;
