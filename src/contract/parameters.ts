import type { TSchema } from "typebox";
import { Type } from "#lib/type.ts";
import { limits } from "#domain/limits.ts";
import { EXAMPLE } from "./fields.ts";
import type { Parameter, ResponseHeader } from "./operation.ts";

/** Spec, Limits; Spec, Idempotency. */
export const idempotencyKey: Parameter = {
  name: "Idempotency-Key",
  in: "header",
  required: false,
  description:
    "Identifies the operation across retries: for 24 hours, the first answer is replayed, with `Idempotent-Replay: true`. Optional but recommended.",
  schema: Type.String({ minLength: 1, maxLength: limits.idempotencyKeyCharactersMax }),
  example: "connect-user-1234",
};

/** A path parameter. No pattern: a malformed id is answered like one that does not exist, with 404. */
export const inPath = (name: string, description: string, example: string): Parameter => ({
  name,
  in: "path",
  required: true,
  description,
  schema: Type.String(),
  example,
});

/** docs/api.md#triggers, under Ignored keys. */
export const prefer: Parameter = {
  name: "Prefer",
  in: "header",
  required: false,
  description:
    "`report-ignored-keys`: the answer lists the keys of the body that were ignored, in `Ignored-Keys` (RFC 7240). Others are ignored.",
  schema: Type.String(),
  example: "report-ignored-keys",
};

/** docs/api.md#queue-options. */
export const queueOptions: readonly Parameter[] = [
  {
    name: "Latchkey-Delay",
    in: "header",
    required: false,
    description: "The run may begin after so many seconds (at most 30 days); until then it is `queued`.",
    schema: Type.Integer({ minimum: 0, maximum: limits.runDelayMsMax / 1_000 }),
    example: 900,
  },
  {
    name: "Latchkey-Priority",
    in: "header",
    required: false,
    description:
      "Among the waiting runs of the account, those with a higher number begin first, then the older ones; 0 if it is not sent.",
    schema: Type.Integer({ minimum: -limits.runPriorityMax, maximum: limits.runPriorityMax }),
    example: 5,
  },
  {
    name: "Latchkey-Expires-In",
    in: "header",
    required: false,
    description:
      "The run becomes `failed` unless it has begun within so many seconds of the trigger (at most 60 days, more than `Latchkey-Delay`).",
    schema: Type.Integer({ minimum: 1, maximum: limits.runExpiryMsMax / 1_000 }),
    example: 3_600,
  },
];

/** docs/api.md#waiting-for-a-change. */
export const preferWait: Parameter = {
  ...prefer,
  description: `\`wait=N\`: the answer comes when the status or the progress step has changed, at the latest after N seconds (at most ${limits.statusWaitSecondsMax}; RFC 7240). Others are ignored.`,
  example: "wait=30",
};

/** On every answer once the body has been read, because a misspelled key may be why metadata is missing. */
export const reportedKeys: readonly ResponseHeader[] = ["Ignored-Keys", "Preference-Applied"];

export const blueprintKey = inPath(
  "blueprintKey",
  "The Blueprint's trigger key, chosen by the operator.",
  EXAMPLE.blueprintKey,
);

/** Spec, Identifier prefixes: wherever a run id is accepted in a path, the `run_key` is accepted too. */
export const runId = inPath("runId", "The run's id (`run_...`) or its `run_key` (a UUID).", EXAMPLE.run);

export const RESPONSE_HEADERS: Readonly<
  Record<
    ResponseHeader,
    {
      readonly description: string;
      readonly required: boolean;
      readonly schema: TSchema;
      readonly example: string;
    }
  >
> = {
  "X-Request-Id": {
    description: "Identifies this request in the service's log. Quote it when you report a failure.",
    required: true,
    schema: Type.String({ pattern: "^req_[0-9A-Za-z]{24,}$" }),
    example: "req_0VbbSVh5Qw8Zk3Tn6Rc1Xj9Lm4Bd",
  },
  "Cache-Control": {
    description: "Answers under the base URL must not be cached.",
    required: true,
    schema: Type.String({ const: "no-store" }),
    example: "no-store",
  },
  "Idempotent-Replay": {
    description:
      "`true` when this is the recorded answer of an earlier request with the same `Idempotency-Key`; else absent.",
    required: false,
    schema: Type.String({ const: "true" }),
    example: "true",
  },
  "Ignored-Keys": {
    description:
      "Keys of the body that were ignored, percent-encoded and separated by commas: at most 20, each shortened to 64 characters. Only with `Prefer: report-ignored-keys`; absent if none was ignored.",
    required: false,
    schema: Type.String({ pattern: "^[!-~]+(, [!-~]+)*$", maxLength: limits.ignoredKeysBytesMax }),
    example: "purchase_ordr, p%C3%A9riode",
  },
  "Preference-Applied": {
    description: "The preference that was applied: `report-ignored-keys`, or `wait` with the seconds.",
    required: false,
    schema: Type.String({ pattern: "^(report-ignored-keys|wait=[0-9]+)$" }),
    example: "report-ignored-keys",
  },
  RateLimit: {
    description:
      "The API key's remaining quota: `r` requests now; if that is 0, `t` seconds until the next one. Absent before authentication, and if the account has no limit.",
    required: false,
    schema: Type.String({ pattern: '^"[a-z]+";r=[0-9]+;t=[0-9]+$' }),
    example: '"calls";r=999;t=0',
  },
  "RateLimit-Policy": {
    description: "The API key's rate limit: `q` requests at once, replenished within `w` seconds.",
    required: false,
    schema: Type.String({ pattern: '^"[a-z]+";q=[0-9]+;w=[0-9]+$' }),
    example: '"calls";q=1000;w=2',
  },
  "Retry-After": {
    description: "How many seconds to wait before sending the request again.",
    required: false,
    schema: Type.String({ pattern: "^[0-9]+$" }),
    example: "1",
  },
  "WWW-Authenticate": {
    description: "The scheme to authenticate with.",
    required: true,
    schema: Type.String({ const: "Bearer" }),
    example: "Bearer",
  },
  "X-Accel-Buffering": {
    description: "Tells a reverse proxy not to buffer the stream.",
    required: true,
    schema: Type.String({ const: "no" }),
    example: "no",
  },
};
