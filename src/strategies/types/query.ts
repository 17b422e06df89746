import { Type } from "#lib/type.ts";
import { TEMPLATE } from "#domain/expression.ts";
import { LoginFailure } from "#strategies/define-login.ts";
import { renderAt } from "#strategies/login-expressions.ts";
import { textPairs } from "#strategies/login-headers.ts";
import { readConfig } from "#domain/read-config.ts";
import { withCheck } from "#strategies/http/with-check.ts";

const schema = Type.Object(
  {
    params: Type.Record(Type.String({ minLength: 1 }), Type.String(), {
      minProperties: 1,
      [TEMPLATE]: "login",
      description: 'Parameter name to template, e.g. `api_key: "{{ $credential.key }}"`.',
    }),
  },
  { additionalProperties: false },
);

/** docs/logins/query.md. */
export const login = withCheck({
  type: "query",
  description: "Query parameters that are sent with every request to the strategy's hosts.",
  schema,
  check({ params }) {
    const isNameless = typeof params === "object" && params !== null && Object.hasOwn(params, "");
    return isNameless
      ? [{ path: ["params", ""], at: "key", message: "a parameter needs a name, for example `api_key`" }]
      : [];
  },
  async login(context, config) {
    const place = "login (query)";
    const { params } = readConfig(schema, config);
    const query = textPairs(
      await renderAt(context.expressions, `${place}: params`, params),
      `${place}: params`,
    ).filter(([, value]) => value !== "");
    if (query.length === 0) throw new LoginFailure(`${place}: every parameter is empty`);
    return { headers: {}, cookies: null, query };
  },
});
