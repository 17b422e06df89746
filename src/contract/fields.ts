import type { TSchema } from "typebox";
import { Type } from "#lib/type.ts";
import { ID_PREFIX } from "#domain/ids.ts";

/** Ids that the service generates: a prefix and 24 or more base62 characters (docs/decisions/0011). */
type OwnId = "credential" | "credentialSession" | "embeddedCredentialSession" | "run" | "blueprint";

/** Ids and URLs for examples. They are not real. */
export const EXAMPLE = {
  credential: "cred_0VbbSVh3mQyT8rJd2LkXw5Ns1Pz9",
  credentialSession: "sess_0VbbSVgYt4Rk7HnQ1Zc9WxB3mD5f",
  embeddedCredentialSession: "ecs_0VbbSVh1Wn6Tc3KpX8Rj5Mq2Fz7B",
  strategy: "strat_northwind_portal",
  run: "run_0VbbSVh5cVF35tcZuFgx5nlDsaxd",
  runKey: "0199d3a4-7c1e-7b52-9f0a-3d2c1b0a9e8f",
  blueprint: "bp_0VbbSTq8Lw2Xk5Jr9Nd4Hs7Zc1Mv",
  blueprintKey: "supplier-invoices",
  hostedUrl: "https://connect.example.com/connect/TOKEN",
  returnUrl: "https://app.example.com/connected?plan=pro",
  cancelUrl: "https://app.example.com/connections",
} as const;

export function id(kind: OwnId, description: string) {
  return Type.String({
    pattern: `^${ID_PREFIX[kind]}[0-9A-Za-z]{24,}$`,
    description,
    examples: [EXAMPLE[kind]],
  });
}

/** Chosen by the operator, so only the prefix is fixed. Spec, Identifier prefixes. */
export const strategyId = Type.String({
  pattern: `^${ID_PREFIX.strategy}`,
  description: "The authentication strategy (`strat_...`) whose fields the hosted form shows.",
  examples: [EXAMPLE.strategy],
});

export const runKey = Type.String({
  format: "uuid",
  description: "The run's key, a UUID. It can be used instead of the run's id in any path.",
  examples: [EXAMPLE.runKey],
});

/** Spec, Conventions: ISO 8601 in UTC with milliseconds; always three digits (docs/api.md#in-general). */
export const timestamp = (description: string, example = "2026-11-21T07:08:09.123Z") =>
  Type.String({
    format: "date-time",
    pattern: "^\\d{4}-\\d{2}-\\d{2}T\\d{2}:\\d{2}:\\d{2}\\.\\d{3}Z$",
    description,
    examples: [example],
  });

/** An open string set (spec, Versioning): a plain string, with the currently known values in its description and examples. */
export const openSet = (description: string, known: readonly string[]) =>
  Type.String({
    description: `${description} Known values: ${known.map((value) => `\`${value}\``).join(", ")}. An open set: treat an unknown value like a state in progress.`,
    examples: [...known],
  });

/** The schema of a string that may be `null`. */
export const nullable = (schema: TSchema, description?: string) =>
  Type.Unsafe<string | null>({
    ...schema,
    type: ["string", "null"],
    ...(description === undefined ? {} : { description }),
  });

/** An object with arbitrary keys whose values all have the same schema. */
export const keyed = <T>(values: TSchema, description: string) =>
  Type.Unsafe<Readonly<Record<string, T>>>({ type: "object", description, additionalProperties: values });
