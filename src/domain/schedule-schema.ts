import { Type } from "#lib/type.ts";
import { DURATION_PATTERN } from "./duration.ts";
import { limits } from "./limits.ts";
import { MISSED_RULES, OVERLAP_RULES, SCHEDULE_KEY_PATTERN } from "./schedule.ts";
import { SAYS } from "./schema-notes.ts";

/** docs/schedules.md describes the keys. */
export const scheduleSchema = Type.Object(
  {
    key: Type.String({
      pattern: SCHEDULE_KEY_PATTERN,
      [SAYS]: "a key of letters, digits, `.`, `_`, `:` and `-`, at most 128 characters",
      description: "Its name, unique among the account's schedules",
    }),
    cron: Type.String({
      minLength: 1,
      maxLength: limits.scheduleCronCharactersMax,
      description: "Minute, hour, day of the month, month, day of the week",
    }),
    time_zone: Type.String({
      minLength: 1,
      description: "An IANA time zone, such as `Europe/Berlin` or `UTC`",
    }),
    missed: Type.Optional(
      Type.Enum([...MISSED_RULES], {
        description: "What becomes of times that passed while no worker was there; default once",
      }),
    ),
    overlap: Type.Optional(
      Type.Enum([...OVERLAP_RULES], {
        description: "What becomes of a time at which an earlier run has not ended; default skip",
      }),
    ),
    jitter: Type.Optional(
      Type.String({
        pattern: DURATION_PATTERN,
        description:
          "How long after its time a run may begin, by the schedule and the time, e.g. 10m; at most 1d, default 0",
      }),
    ),
    trigger: Type.Optional(
      Type.Record(Type.String(), Type.Unknown(), {
        description: "The body of each trigger: credentials, inputs and metadata",
      }),
    ),
  },
  { additionalProperties: false },
);
