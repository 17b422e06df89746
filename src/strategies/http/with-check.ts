import { Type } from "#lib/type.ts";
import { isJsonObject, type JsonObject } from "#domain/json.ts";
import { matchesSchema } from "#domain/matches-schema.ts";
import { readConfig } from "#domain/read-config.ts";
import type { ConfigFinding, LoginContext, LoginType } from "#strategies/define-login.ts";
import { checkExpect, checkRequest } from "./http-check-config.ts";
import { checkKeys, type CheckConfig } from "./http-schema.ts";
import { runCheck } from "./http-steps.ts";

const checkSchema = Type.Object(checkKeys);

/**
 * Adds a `check` to a login that sends no requests. Without it, the first request of a run shows whether the target accepts the
 * credential.
 */
export function withCheck(type: LoginType): LoginType {
  const without = ({ check: _check, ...rest }: JsonObject): JsonObject => rest;
  return {
    ...type,
    schema: Type.Object({ ...type.schema.properties, ...checkKeys }, { additionalProperties: false }),
    check: (config, strategy) => {
      const { check } = config;
      return [
        ...(type.check?.(without(config), strategy) ?? []),
        ...(isJsonObject(check) && matchesSchema(checkSchema, { check })
          ? checkFindings(readConfig(checkSchema, { check }).check)
          : []),
      ];
    },
    warn: ({ check }) =>
      check === undefined
        ? [
            {
              path: [],
              message:
                "this login sends nothing, so a wrong credential is only noticed when a run sends a request; add a `check`, as in `{ request: { url: /me } }`",
            },
          ]
        : [],
    explainUntried: ({ check }) =>
      check === undefined
        ? "this login sends nothing, so there is nothing to try; add a `check` to `login`, or remove `verify`"
        : null,
    login: async (context, config) => {
      const session = await type.login(context, without(config));
      if (config["check"] !== undefined)
        await context.within(session, async (own) => await checkSession(own, config));
      return session;
    },
    checkSession,
  };
}

const checkFindings = (check: CheckConfig | undefined): readonly ConfigFinding[] => [
  ...checkRequest(check?.request, ["check", "request"]),
  ...checkExpect(check?.expect, ["check", "expect"]),
];

/** The context's requests use the session. */
async function checkSession(context: LoginContext, config: JsonObject): Promise<void> {
  const { check } = readConfig(checkSchema, config["check"] === undefined ? {} : { check: config["check"] });
  await runCheck(context, check, {});
}
