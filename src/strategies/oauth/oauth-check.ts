import { quote } from "#domain/config-problem.ts";
import { isServiceVariable } from "#domain/service-variable.ts";
import type { ConfigFinding } from "#strategies/define-login.ts";
import { checkFieldKey } from "#strategies/login-headers.ts";
import { grantOf, type Grant, type OAuthConfig } from "./oauth-schema.ts";
import { endpointProblem } from "./oauth-url.ts";

/** Parameters of the protocol. Overriding one of them in `extra_params` could make it unsafe. */
const RESERVED_PARAMETERS: ReadonlySet<string> = new Set(
  (
    "response_type response_mode client_id client_secret redirect_uri scope state nonce code code_challenge " +
    "code_challenge_method code_verifier grant_type refresh_token username password request request_uri iss " +
    "client_assertion client_assertion_type"
  ).split(" "),
);
const ENDPOINTS = ["issuer", "authorization_url", "token_url"] as const;

/** Mistakes of an `oauth2` login that its schema can't express. */
export function checkOAuthConfig(
  config: OAuthConfig,
  strategy: { readonly fieldKeys: readonly string[] },
): readonly ConfigFinding[] {
  const grant = grantOf(config);
  return [
    ...checkEndpoints(config, grant),
    ...checkClient(config),
    ...checkUser(config, grant, strategy.fieldKeys),
    ...checkParameters(config),
  ];
}

function checkEndpoints(config: OAuthConfig, grant: Grant): readonly ConfigFinding[] {
  const findings: ConfigFinding[] = ENDPOINTS.flatMap((key) => {
    const url = config[key];
    const message = url === undefined ? null : endpointProblem(url);
    return message === null ? [] : [{ path: [key], message }];
  });
  const { issuer, authorization_url, token_url } = config;
  const wanted = [
    ...(grant === "authorization_code" && authorization_url === undefined ? ["`authorization_url`"] : []),
    ...(token_url === undefined ? ["`token_url`"] : []),
  ];
  if (issuer === undefined && wanted.length > 0)
    findings.push({
      path: [],
      message: `the key \`issuer\` is missing, from which the server's endpoints are discovered; add it, or ${wanted.join(" and ")}`,
    });
  if (grant !== "authorization_code" && authorization_url !== undefined)
    findings.push({
      path: ["authorization_url"],
      at: "key",
      message: `with \`grant: ${grant}\` no end user signs in there; remove it`,
    });
  if (issuer === undefined && config.scopes?.includes("openid") === true)
    findings.push({
      path: ["scopes", config.scopes.indexOf("openid")],
      message:
        "`openid` asks for an ID token, which can't be checked without an `issuer`; add it, or remove the scope",
    });
  return findings;
}

function checkClient(config: OAuthConfig): readonly ConfigFinding[] {
  const { client_secret: own, client_secret_env: variable, token_auth: auth } = config;
  const findings: ConfigFinding[] = [];
  if (variable !== undefined)
    findings.push({
      path: ["client_secret_env"],
      at: "key",
      message: isServiceVariable(variable)
        ? `${quote(variable)} is one of the service's own variables, which are never sent; remove it`
        : `nothing defines where a variable's value may be sent; store it with \`latchkey secrets set\` (or \`import-env\`), and write \`client_secret: { secret: ${variable} }\``,
    });
  if (typeof own === "string" && !own.includes("{{"))
    findings.push({
      path: ["client_secret"],
      message:
        'a document must not contain a secret; refer to an account secret, `{ secret: NAME }`, or to a field: "{{ $credential.secret }}"',
    });
  const hasSecret = own !== undefined || variable !== undefined;
  if (auth === "none" && hasSecret)
    findings.push({
      path: ["token_auth"],
      message: "`none` sends no secret; remove the secret, or choose another",
    });
  if (auth !== undefined && auth !== "none" && !hasSecret)
    findings.push({
      path: ["token_auth"],
      message: `${quote(auth)} needs a secret; add \`client_secret: { secret: NAME }\``,
    });
  if (grantOf(config) === "client_credentials" && !hasSecret)
    findings.push({
      path: [],
      message: "the key `client_secret` is missing; with `grant: client_credentials` the secret is the login",
    });
  return findings;
}

function checkUser(
  config: OAuthConfig,
  grant: Grant,
  fieldKeys: readonly string[],
): readonly ConfigFinding[] {
  return (["username", "password"] as const).flatMap((key): readonly ConfigFinding[] => {
    const field = config[key];
    if (grant !== "password")
      return field === undefined
        ? []
        : [{ path: [key], at: "key", message: "belongs to `grant: password`; remove it" }];
    if (field === undefined)
      return [
        { path: [], message: `the key \`${key}\` is missing; \`grant: password\` takes the key of a field` },
      ];
    return checkFieldKey(field, [key], fieldKeys);
  });
}

function checkParameters(config: OAuthConfig): readonly ConfigFinding[] {
  return Object.keys(config.extra_params ?? {}).flatMap((name): readonly ConfigFinding[] =>
    RESERVED_PARAMETERS.has(name)
      ? [
          {
            path: ["extra_params", name],
            at: "key",
            message: `${quote(name)} is a parameter of the protocol, which the service sets; remove it`,
          },
        ]
      : [],
  );
}
