import { Type } from "typebox";
import { isJsonObject, type JsonObject } from "#domain/json.ts";
import { matchesSchema } from "#domain/matches-schema.ts";
import { readConfig } from "#domain/read-config.ts";
import type { ConfigFinding, LoginContext, LoginType } from "#strategies/define-login.ts";
import { checkExpect, checkRequest } from "./http-check-config.ts";
import { checkKeys, type CheckConfig } from "./http-schema.ts";
import { runCheck } from "./http-steps.ts";

const checkSchema = Type.Object(checkKeys);

/**
 * A login that sends nothing by itself, with a `check` that does: without one nobody learns whether the target takes the credential
 * before the first request of a run.
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
                "this login sends nothing, so only a request of a run tells that a credential is wrong; add a `check`, as in `{ request: { url: /me } }`",
            },
          ]
        : [],
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

/** The context's requests carry the session. */
async function checkSession(context: LoginContext, config: JsonObject): Promise<void> {
  const { check } = readConfig(checkSchema, config["check"] === undefined ? {} : { check: config["check"] });
  await runCheck(context, check, {});
}
