import { must } from "#lib/assert.ts";
import { Type } from "#lib/type.ts";
import { DURATION_PATTERN, parseDuration } from "./duration.ts";
import { isJsonObject, type Json } from "./json.ts";

/** The maximum rate of requests of an account's runs to one host. */
export interface HostThrottle {
  /** Canonical. */
  readonly origin: string;
  readonly spacingMs: number;
}

/** The longest time in which requests are counted. */
export const THROTTLE_MS_MAX = 3_600_000;
const HOSTS_MAX = 50;
const REQUESTS_MAX = 1_000_000;
const closed = { additionalProperties: false };

/** The key `throttle` of an account document. */
export const hostThrottlesSchema = Type.Optional(
  Type.Array(
    Type.Object(
      {
        host: Type.String({ description: "An origin, such as `https://erp.example`" }),
        requests: Type.Integer({ minimum: 1, maximum: REQUESTS_MAX, description: "How many" }),
        per: Type.String({ pattern: DURATION_PATTERN, description: "In how much time, e.g. 1s, 1m" }),
      },
      closed,
    ),
    {
      maxItems: HOSTS_MAX,
      description: "The maximum rates of requests to hosts, evenly spaced, over all Blueprints",
    },
  ),
);

/** Reads the `throttle` of an account document that `apply` has checked. */
export function readHostThrottles(value: Json | undefined): readonly HostThrottle[] {
  if (!Array.isArray(value)) return [];
  return value.filter(isJsonObject).flatMap(({ host, requests, per }) =>
    typeof host !== "string" || typeof requests !== "number"
      ? []
      : [
          {
            origin: new URL(host).origin,
            spacingMs: must(parseDuration(per ?? ""), "a checked duration") / requests,
          },
        ],
  );
}
