import { secretTexts } from "#domain/field-values.ts";
import { isJsonObject, texts, type Json } from "#domain/json.ts";
import { limits } from "#domain/limits.ts";
import type { Strategy } from "#domain/strategy.ts";
import type { Secret } from "#lib/secret.ts";
import { LoginFailure, type LoginSession } from "#strategies/define-login.ts";
import type { CredentialFields } from "./login-values.ts";
import { cookieSecrets, type RunSecret } from "#engine/redaction/run-secrets.ts";

export interface LoggedIn {
  readonly session: Secret<LoginSession>;
  /** Values that are searched for in all answers of targets and in everything that the run stores. */
  readonly secrets: readonly RunSecret[];
  /** The values that the target gave and may get back through a handle, and the values that the end user gave. */
  readonly fromTarget: readonly string[];
  readonly fromEndUser: readonly string[];
}

export const loggedInWith = (
  strategy: Strategy,
  fields: Secret<CredentialFields>,
  session: Secret<LoginSession>,
): LoggedIn => ({
  session,
  secrets: secretValues(strategy, fields, session),
  fromTarget: targetValues(strategy, fields, session),
  fromEndUser: givenSecrets(strategy, fields),
});

/**
 * Values that must not be stored if a target echoes them: the secret fields and the login's session, but not user names. Throws
 * LoginFailure when the target gave more values than the redactor looks for.
 */
export function secretValues(
  strategy: Strategy,
  fields: Secret<CredentialFields>,
  session: Secret<LoginSession>,
): readonly RunSecret[] {
  const given = sessionSecrets(strategy, fields, session);
  if (given.length > limits.sessionSecretsMax)
    throw new LoginFailure(
      `login: the target gave ${given.length} values that are kept secret (cookies, headers, what is extracted); ${limits.sessionSecretsMax} are possible. ` +
        "set `secret: false` for extracted values that are not secret",
    );
  return [...givenSecrets(strategy, fields), ...given];
}

/**
 * The secret values of a login's session, and those that it read on the way: headers and parameters as a whole and in parts (the token
 * after a scheme's name), cookies, extracted values, one-time codes. Not secret: values in the strategy's document, values extracted
 * with `secret: false`, and non-secret fields.
 */
export function sessionSecrets(
  strategy: Strategy,
  fields: Secret<CredentialFields>,
  session: Secret<LoginSession>,
): readonly RunSecret[] {
  const { headers, query = [], codes = [] } = session.reveal();
  const isSecret = secrecyOf(strategy, fields, session);
  const added = [...Object.values(headers), ...query.map(([, value]) => value)];
  const values = new Set([
    ...added.flatMap(partsOf).filter(isSecret),
    ...targetValues(strategy, fields, session),
  ]);
  return [
    ...[...values].filter((value) => value.length >= SECRET_CHARACTERS_MIN).map(asDigits),
    ...codes.map((value) => ({ value, alone: true }) as const),
  ];
}

/** The values that the target itself gave and may get back: extracted values and cookies. */
function targetValues(
  strategy: Strategy,
  fields: Secret<CredentialFields>,
  session: Secret<LoginSession>,
): readonly string[] {
  const extracted = session.reveal().extracted?.secret ?? [];
  return [
    ...extracted
      .filter(secrecyOf(strategy, fields, session))
      .filter((value) => value.length >= SECRET_CHARACTERS_MIN),
    ...cookieSecrets(sessionCookies(session)),
  ];
}

/** Values in the strategy's document are not secret, nor are its hosts, which may contain a tenant's name. */
function secrecyOf(
  strategy: Strategy,
  fields: Secret<CredentialFields>,
  session: Secret<LoginSession>,
): (value: string) => boolean {
  const document = JSON.stringify([strategy.login, strategy.hosts]);
  const open = new Set([...(session.reveal().extracted?.open ?? []), ...openTexts(strategy, fields)]);
  return (value) => !open.has(value) && !document.includes(JSON.stringify(value).slice(1, -1));
}

/** Shorter values are not looked for (`secret-search.ts`) and don't count. */
const SECRET_CHARACTERS_MIN = 6;

/** A short number occurs in many longer ones. */
const asDigits = (value: string): RunSecret => (/^\d+$/.test(value) ? { value, alone: true } : value);

/** A header's or parameter's value and its parts, without the names of schemes (`Token …`) and parameters (`realm=…`). */
function partsOf(value: string): readonly string[] {
  const parts = value
    .replace(/^[A-Za-z]+(?=\s)/, "")
    .replace(/(^|[\s,;])[A-Za-z_-]+=(?=[^\s,;=])/g, "$1")
    .split(/[\s,;="]+/);
  return [value.replace(/^[A-Za-z]+\s+/, ""), ...parts];
}

export function givenSecrets(strategy: Strategy, fields: Secret<CredentialFields>): readonly string[] {
  return strategy.fields
    .filter((field) => field.secret)
    .flatMap((field) => secretTexts(field, fields.reveal().get(field.key) ?? ""));
}

function openTexts(strategy: Strategy, fields: Secret<CredentialFields>): readonly string[] {
  return strategy.fields
    .filter((field) => !field.secret)
    .flatMap((field) => secretTexts(field, fields.reveal().get(field.key) ?? ""));
}

function sessionCookies(session: Secret<LoginSession>): readonly string[] {
  const cookies = session.reveal().cookies?.["cookies"];
  if (!Array.isArray(cookies)) return [];
  return cookies.flatMap((cookie: Json) => (isJsonObject(cookie) ? texts([cookie["value"] ?? null]) : []));
}

/** Every value of a credential, secret or not: for output that leaves the machine on purpose, such as a recording. */
export function secretsOfAllFields(strategy: Strategy, fields: Secret<CredentialFields>): readonly string[] {
  return strategy.fields.flatMap((field) => secretTexts(field, fields.reveal().get(field.key) ?? ""));
}
