import { Type } from "#lib/type.ts";
import { TEMPLATE } from "#domain/expression.ts";
import { readHeaders } from "#domain/header-rows.ts";
import { isJsonObject } from "#domain/json.ts";
import { LoginFailure } from "#strategies/define-login.ts";
import { checkFieldOfType, checkHeaderNames, sessionHeaders } from "#strategies/login-headers.ts";
import { readConfig } from "#domain/read-config.ts";
import { renderAt } from "#strategies/login-expressions.ts";
import { withCheck } from "#strategies/http/with-check.ts";

const schema = Type.Object(
  {
    headers: Type.Optional(
      Type.Record(Type.String(), Type.String(), {
        minProperties: 1,
        [TEMPLATE]: "login",
        description: 'Header name to template, e.g. `X-Api-Key: "{{ $credential.key }}"`.',
      }),
    ),
    from: Type.Optional(Type.String({ minLength: 1, description: "The key of a field of type `headers`." })),
  },
  { additionalProperties: false },
);

/** docs/logins/headers.md. */
export const login = withCheck({
  type: "headers",
  description: "Headers that are sent with every request to the strategy's hosts.",
  schema,
  check(config, strategy) {
    const { headers, from } = config;
    if (headers === undefined && from === undefined) {
      const message =
        'the key `headers` is missing; write `headers: { X-Api-Key: "{{ $credential.key }}" }`, or `from: <key of a headers field>`';
      return [{ path: [], message }];
    }
    return [
      ...(isJsonObject(headers) ? checkHeaderNames(headers, ["headers"]) : []),
      ...(typeof from === "string" ? checkFieldOfType(from, "headers", ["from"], strategy) : []),
    ];
  },
  async login(context, config) {
    const place = "login (headers)";
    const read = readConfig(schema, config);
    const rendered = await renderAt(context.expressions, `${place}: headers`, read.headers ?? {});
    const given = read.from === undefined ? "" : (context.field(read.from) ?? "");
    // The strategy's own headers take precedence: an end user's must not replace the author's.
    const headers = {
      ...sessionHeaders(Object.fromEntries(readHeaders(given)), place),
      ...sessionHeaders(rendered, place),
    };
    if (Object.keys(headers).length === 0) throw new LoginFailure(`${place}: every header is empty`);
    return { headers, cookies: null };
  },
});
