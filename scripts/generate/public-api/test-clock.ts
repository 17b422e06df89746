import { Type } from "#lib/type.ts";
import { notAuthorised, refusedField, tooLarge, unsupportedType } from "#contract/failures.ts";
import { timestamp } from "#contract/fields.ts";
import { json, type Operation } from "#contract/operation.ts";

const EXAMPLE = { now: "2027-01-31T08:00:00.000Z" };

const clock = Type.Object(
  { now: timestamp("The time by the clock of the test account.") },
  { title: "TestClock", description: "The clock of a test account." },
);

const request = Type.Object(
  { now: timestamp("The time to move to, at most 400 days ahead. A time that has passed changes nothing.") },
  { title: "TestClockRequest", description: "Where the clock is moved to.", additionalProperties: false },
);

const content = json(clock, { clock: EXAMPLE });

export const readTestClock: Operation = {
  id: "readTestClock",
  method: "get",
  path: "/test-clock",
  tag: "Test mode",
  summary: "Read the test clock",
  description: "The time by which deadlines of the test account pass. Only for keys of test mode.",
  parameters: [],
  answers: [{ status: 200, description: "The clock.", content }],
  failures: [notAuthorised],
  curl: {
    curl: `curl -sS "$BASE_URL/test-clock" \\
  -H "Authorization: Bearer $API_KEY"`,
  },
};

export const putTestClock: Operation = {
  id: "putTestClock",
  method: "put",
  path: "/test-clock",
  tag: "Test mode",
  summary: "Move the test clock",
  description:
    "Every deadline of the test account comes sooner by the difference: the expiry of sessions and of waiting runs, retention, idempotency windows, reviews and schedules. The same request again changes nothing, so it needs no `Idempotency-Key`. Only for keys of test mode.",
  parameters: [],
  body: { required: true, content: json(request, { later: EXAMPLE }) },
  answers: [{ status: 200, description: "The clock, moved.", content }],
  failures: [
    notAuthorised,
    tooLarge("More than 1 MiB or more than 250,000 values."),
    unsupportedType("The body is not `application/json` in UTF-8.", "application/json"),
    {
      status: 422,
      description: "`now` is missing, malformed, or too far ahead.",
      examples: {
        now: refusedField("now", "`now` must be a time in UTC, such as 2027-01-31T08:00:00.000Z."),
      },
    },
  ],
  curl: {
    curl: `curl -sS -X PUT "$BASE_URL/test-clock" \\
  -H "Authorization: Bearer $API_KEY" \\
  -H "Content-Type: application/json" \\
  -d '{ "now": "2027-01-31T08:00:00.000Z" }'`,
  },
};
