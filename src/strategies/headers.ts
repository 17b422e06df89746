import { Type } from "typebox";
import { TEMPLATE } from "#domain/expression.ts";
import { isJsonObject } from "#domain/json.ts";
import { defineLogin, LoginFailure } from "./define-login.ts";
import { checkHeaderNames, sessionHeaders } from "./login-headers.ts";
import { readConfig } from "#domain/read-config.ts";
import { renderAt } from "./login-expressions.ts";

const schema = Type.Object(
  {
    headers: Type.Optional(
      Type.Record(Type.String(), Type.String(), {
        minProperties: 1,
        [TEMPLATE]: "login",
        description: 'Header name to template, e.g. `X-Api-Key: "{{ $credential.key }}"`.',
      }),
    ),
    from: Type.Optional(Type.String({ description: "Not built yet: there is no field type `headers`." })),
  },
  { additionalProperties: false },
);

/** Design, page 3, the table of login types: `headers`. */
export const login = defineLogin({
  type: "headers",
  description: "Headers that go along with every request to the strategy's hosts.",
  schema,
  check(config) {
    if (config["from"] !== undefined) {
      const message =
        '`from` is not built yet, because the field type `headers` isn\'t; write `headers: { X-Api-Key: "{{ $credential.key }}" }`';
      return [{ path: ["from"], at: "key", message }];
    }
    const { headers } = config;
    if (headers === undefined)
      return [
        {
          path: [],
          message: 'the key `headers` is missing; write `headers: { X-Api-Key: "{{ $credential.key }}" }`',
        },
      ];
    return isJsonObject(headers) ? checkHeaderNames(headers, ["headers"]) : [];
  },
  async login(context, config) {
    const place = "login (headers)";
    const rendered = await renderAt(
      context.expressions,
      `${place}: headers`,
      readConfig(schema, config).headers ?? {},
    );
    const headers = sessionHeaders(rendered, place);
    if (Object.keys(headers).length === 0) throw new LoginFailure(`${place}: every header is empty`);
    return { headers, cookies: null };
  },
});
