import Type, { type TSchema } from "typebox";
import { limits } from "#domain/limits.ts";
import { EXAMPLE } from "./fields.ts";
import type { Parameter, ResponseHeader } from "./operation.ts";

/** Spec, Limits; Spec, Idempotency. */
export const idempotencyKey: Parameter = {
  name: "Idempotency-Key",
  in: "header",
  required: false,
  description:
    "Names the logical operation, the same across retries: the first answer is replayed for 24 hours, with `Idempotent-Replay: true`. Optional but recommended.",
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

/** On every answer once the body has been read: a misspelled key is why metadata is missing. */
export const reportedKeys: readonly ResponseHeader[] = ["Ignored-Keys", "Preference-Applied"];

export const blueprintKey = inPath(
  "blueprintKey",
  "The trigger key of the Blueprint, given by the operator.",
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
    description: "Names this request in the service's log: quote it when you report a failure.",
    required: true,
    schema: Type.String({ pattern: "^req_[0-9A-Za-z]{24,}$" }),
    example: "req_0VbbSVh5Qw8Zk3Tn6Rc1Xj9Lm4Bd",
  },
  "Cache-Control": {
    description: "Nothing under the base URL may be cached.",
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
      "Keys of the body that were ignored, percent-encoded and separated by commas: 20 at most, of each its first 64 characters. Only with `Prefer: report-ignored-keys`; absent when none was ignored.",
    required: false,
    schema: Type.String({ pattern: "^[!-~]+(, [!-~]+)*$", maxLength: limits.ignoredKeysBytesMax }),
    example: "purchase_ordr, p%C3%A9riode",
  },
  "Preference-Applied": {
    description: "`report-ignored-keys` when the request asked for it.",
    required: false,
    schema: Type.String({ const: "report-ignored-keys" }),
    example: "report-ignored-keys",
  },
  RateLimit: {
    description:
      "What is left of the API key's allowance: `r` requests now, `t` seconds until the next when there are none. Absent before authentication, and where the account has no limit.",
    required: false,
    schema: Type.String({ pattern: '^"[a-z]+";r=[0-9]+;t=[0-9]+$' }),
    example: '"calls";r=999;t=0',
  },
  "RateLimit-Policy": {
    description: "The allowance itself: `q` requests at once, filled up again within `w` seconds.",
    required: false,
    schema: Type.String({ pattern: '^"[a-z]+";q=[0-9]+;w=[0-9]+$' }),
    example: '"calls";q=1000;w=2',
  },
  "Retry-After": {
    description: "How many seconds to wait before the request is sent again.",
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
    description: "Tells a reverse proxy not to hold the stream back.",
    required: true,
    schema: Type.String({ const: "no" }),
    example: "no",
  },
};
