import { Type } from "#lib/type.ts";
import { DURATION_PATTERN } from "#domain/duration.ts";
import { FIRE_OUTCOMES, MISSED_RULES, OVERLAP_RULES, PAUSE_REASONS } from "#domain/schedule.ts";
import { limits } from "#domain/limits.ts";
import {
  errorExample,
  notAuthorised,
  notFound,
  refusedField,
  tooLarge,
  unsupportedType,
} from "#contract/failures.ts";
import { EXAMPLE, keyed, nullable, openSet, timestamp } from "#contract/fields.ts";
import { json, type Operation } from "#contract/operation.ts";
import { inPath } from "#contract/parameters.ts";

const scheduleKey = inPath(
  "scheduleKey",
  "Your key of the schedule, such as one per connection: letters, digits, `.`, `_`, `:` and `-`, at most 128.",
  "invoices-of-user-1234",
);

const TERMS = {
  blueprint_key: Type.String({
    description: "The Blueprint's trigger key.",
    examples: [EXAMPLE.blueprintKey],
  }),
  cron: Type.String({
    maxLength: limits.scheduleCronCharactersMax,
    description: "Minute, hour, day of the month, month, day of the week.",
    examples: ["30 6 * * MON-FRI"],
  }),
  time_zone: Type.String({ description: "An IANA time zone.", examples: ["Europe/Berlin"] }),
};
const MISSED =
  "Times that passed while no worker was there. `skip`: none; `once`: one run for all of them; `all`: one run each, at most the latest 100.";
const OVERLAP =
  "A time at which an earlier run has not ended. `skip`: no run; `queue`: the run waits for the earlier one's end; `cancel`: the earlier one is cancelled.";
const JITTER =
  "How long after its time a run may begin, such as `90s` or `10m`, at most `1d`: how long follows from the schedule and the time, and it is before the next time. It spreads many schedules of the same time.";

const request = Type.Object(
  {
    ...TERMS,
    missed: Type.Optional(
      Type.Unsafe<"skip" | "once" | "all">({
        type: "string",
        enum: [...MISSED_RULES],
        description: `${MISSED} \`once\` unless given.`,
      }),
    ),
    overlap: Type.Optional(
      Type.Unsafe<"skip" | "queue" | "cancel">({
        type: "string",
        enum: [...OVERLAP_RULES],
        description: `${OVERLAP} \`skip\` unless given.`,
      }),
    ),
    jitter: Type.Optional(
      Type.String({
        pattern: DURATION_PATTERN,
        description: `${JITTER} \`0\` unless given.`,
        examples: ["10m"],
      }),
    ),
    trigger: Type.Optional(
      keyed<unknown>(
        Type.Unknown(),
        "The body of each trigger: credentials, inputs and metadata, as `POST /blueprints/{blueprintKey}/trigger` takes it, at most 64 KiB.",
      ),
    ),
  },
  {
    title: "ScheduleRequest",
    description: "When a Blueprint runs, and with what.",
    additionalProperties: false,
  },
);

const last = Type.Object(
  {
    due_at: timestamp("The time."),
    outcome: openSet("What became of it.", FIRE_OUTCOMES),
    run_id: nullable(Type.String(), "The run, if there is one."),
  },
  { title: "ScheduleFire", description: "The last time about which something was decided." },
);

const schedule = Type.Object(
  {
    key: Type.String({ description: "Your key.", examples: ["invoices-of-user-1234"] }),
    ...TERMS,
    missed: openSet(MISSED, MISSED_RULES),
    overlap: openSet(OVERLAP, OVERLAP_RULES),
    jitter: Type.String({ description: JITTER, examples: ["10m"] }),
    status: openSet("Whether it begins runs.", ["active", "paused"]),
    paused_reason: nullable(
      openSet("", [...PAUSE_REASONS, "credential_locked"]),
      "Why it is paused; `null`: it is active. `credential_locked` ends by itself, and `operator` when an operator resumes it; after any other reason, put it again.",
    ),
    paused_until: nullable(
      timestamp(""),
      "When the locked credential is used again; `null` for other reasons.",
    ),
    paused_detail: nullable(Type.String(), "Why its trigger was refused."),
    next_at: nullable(timestamp(""), "Its next time; `null` while it is paused."),
    last: Type.Union([last, Type.Null()]),
    created_at: timestamp("When it was created."),
    updated_at: timestamp("When it last changed."),
  },
  { title: "Schedule", description: "A schedule. Like a run's status it has nothing of the trigger's body." },
);

const example = {
  key: "invoices-of-user-1234",
  blueprint_key: EXAMPLE.blueprintKey,
  cron: "30 6 * * MON-FRI",
  time_zone: "Europe/Berlin",
  missed: "once",
  overlap: "skip",
  jitter: "10m",
  status: "active",
  paused_reason: null,
  paused_until: null,
  paused_detail: null,
  next_at: "2026-11-23T05:30:00.000Z",
  last: { due_at: "2026-11-20T05:30:00.000Z", outcome: "run", run_id: EXAMPLE.run },
  created_at: "2026-11-01T09:00:00.000Z",
  updated_at: "2026-11-01T09:00:00.000Z",
};

const ofDocument = {
  status: 409,
  description: "The document of the Blueprint has the schedule, which alone changes it.",
  examples: {
    document: errorExample(
      "conflict",
      "The document of the Blueprint has this schedule, which alone changes it. Choose another key.",
    ),
  },
} as const;

const missing = notFound("Schedule", "The API key's account has no such schedule.");

export const putSchedule: Operation = {
  id: "putSchedule",
  method: "put",
  path: "/schedules/{scheduleKey}",
  tag: "Schedules",
  summary: "Create or replace a schedule",
  description:
    "From now on the Blueprint runs at the times of the cron expression in the time zone. The trigger is checked as if it were sent now. The same request again changes nothing, so it needs no `Idempotency-Key`; another one replaces the schedule and ends its pause.",
  parameters: [scheduleKey],
  body: {
    required: true,
    content: json(request, {
      weekdays: {
        blueprint_key: EXAMPLE.blueprintKey,
        cron: "30 6 * * MON-FRI",
        time_zone: "Europe/Berlin",
        trigger: { credential_id: EXAMPLE.credential, purchase_order: "PO-2026-17" },
      },
    }),
  },
  answers: [
    {
      status: 201,
      description: "It was created.",
      content: json(schedule, { schedule: { ...example, last: null } }),
    },
    {
      status: 200,
      description: "It existed: what it is now.",
      content: json(schedule, { schedule: example }),
    },
  ],
  failures: [
    notAuthorised,
    missing,
    ofDocument,
    tooLarge("More than 1 MiB or more than 250,000 values."),
    unsupportedType("The body is not `application/json` in UTF-8.", "application/json"),
    {
      status: 422,
      description:
        "A field is missing, malformed or unknown, or a trigger with this body would be refused: then `field` begins with `trigger.`.",
      examples: {
        cron: refusedField(
          "cron",
          "`cron` must have five fields: minute, hour, day of the month, month, day of the week.",
        ),
        trigger: refusedField(
          "trigger.credential_id",
          "`credential_id` names a credential that does not exist in this account.",
        ),
      },
    },
  ],
  curl: {
    curl: `curl -sS -X PUT "$BASE_URL/schedules/invoices-of-user-1234" \\
  -H "Authorization: Bearer $API_KEY" \\
  -H "Content-Type: application/json" \\
  -d '{ "blueprint_key": "'"$BLUEPRINT_KEY"'",
        "cron": "30 6 * * MON-FRI", "time_zone": "Europe/Berlin",
        "trigger": { "credential_id": "'"$CREDENTIAL_ID"'",
                     "purchase_order": "PO-2026-17",
                     "period": { "from": "2026-11-01" } } }'`,
  },
};

export const readSchedule: Operation = {
  id: "readSchedule",
  method: "get",
  path: "/schedules/{scheduleKey}",
  tag: "Schedules",
  summary: "Read a schedule",
  description: "Its terms, its state and its next time, but nothing of the trigger's body.",
  parameters: [scheduleKey],
  answers: [{ status: 200, description: "The schedule.", content: json(schedule, { schedule: example }) }],
  failures: [notAuthorised, missing],
  curl: {
    curl: `curl -sS "$BASE_URL/schedules/invoices-of-user-1234" \\
  -H "Authorization: Bearer $API_KEY"`,
  },
};

export const deleteSchedule: Operation = {
  id: "deleteSchedule",
  method: "delete",
  path: "/schedules/{scheduleKey}",
  tag: "Schedules",
  summary: "Delete a schedule",
  description: "It begins no more runs. Runs that it began go on. A request body is ignored.",
  parameters: [scheduleKey],
  answers: [{ status: 204, description: "Deleted. The body is empty." }],
  failures: [notAuthorised, missing, ofDocument],
  curl: {
    curl: `curl -sS -i -X DELETE "$BASE_URL/schedules/invoices-of-user-1234" \\
  -H "Authorization: Bearer $API_KEY"`,
  },
};
