import { secretTexts } from "#domain/field-values.ts";
import { isJsonObject, texts, type Json } from "#domain/json.ts";
import type { Strategy } from "#domain/strategy.ts";
import type { Secret } from "#lib/secret.ts";
import type { LoginSession } from "#strategies/define-login.ts";
import type { CredentialFields } from "./login-context.ts";

/** Values that must not be stored if a target echoes them: the secret fields, and what the login gave. User names are not. */
export function secretValues(
  strategy: Strategy,
  fields: Secret<CredentialFields>,
  session: Secret<LoginSession>,
): readonly string[] {
  return [...givenSecrets(strategy, fields), ...sessionSecrets(session)];
}

/** What a login gave and later requests carry. */
export function sessionSecrets(session: Secret<LoginSession>): readonly string[] {
  const query = (session.reveal().query ?? []).map(([, value]) => value);
  const headers = Object.values(session.reveal().headers).map((value) =>
    value.replace(/^(basic|bearer) /i, ""),
  );
  return [...headers, ...query, ...sessionCookies(session)];
}

export function givenSecrets(strategy: Strategy, fields: Secret<CredentialFields>): readonly string[] {
  return strategy.fields
    .filter((field) => field.secret)
    .flatMap((field) => secretTexts(field, fields.reveal().get(field.key) ?? ""));
}

/** Shorter ones (`lang=english`) are no secret, and would be found in ordinary text. */
const COOKIE_CHARACTERS_MIN = 16;

function sessionCookies(session: Secret<LoginSession>): readonly string[] {
  const cookies = session.reveal().cookies?.["cookies"];
  if (!Array.isArray(cookies)) return [];
  const values = cookies.flatMap((cookie: Json) =>
    isJsonObject(cookie) ? texts([cookie["value"] ?? null]) : [],
  );
  return values.filter((value) => value.length >= COOKIE_CHARACTERS_MIN);
}

/** Every value of a credential, secret or not: for what leaves the machine on purpose, as a recording does. */
export function secretsOfAllFields(strategy: Strategy, fields: Secret<CredentialFields>): readonly string[] {
  return strategy.fields.flatMap((field) => secretTexts(field, fields.reveal().get(field.key) ?? ""));
}
