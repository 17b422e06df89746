import { isJsonObject, texts, type Json } from "./json.ts";
import { limits } from "./limits.ts";
import { isServiceVariable } from "./service-variable.ts";

/** A secret of an account, and the only origins that it may be sent to. */
export interface AccountSecret {
  readonly value: string;
  /** Canonical. */
  readonly origins: readonly string[];
}

/** Names of environment variables are valid names of secrets, too, so that a variable's value can be stored under the same name. */
export const SECRET_NAME = "^[A-Za-z_][A-Za-z0-9_]{0,127}$";

/** A reference in a login's document to a secret that is stored elsewhere. */
export type SecretReference =
  | { readonly kind: "secret"; readonly name: string }
  /** Versions from before account secrets: `client_secret_env`. */
  | { readonly kind: "variable"; readonly name: string };

/** The result of looking up a reference. Secret. */
export type FoundSecret =
  | ({ readonly kind: "found" } & AccountSecret)
  | { readonly kind: "missing" }
  /** The secret is sealed, and this process has no private keys. */
  | { readonly kind: "sealed" }
  /** Its row was damaged or changed, or this process lacks the key. */
  | { readonly kind: "broken" };

/** The reference of an `oauth2` login's document; null: there is none. */
export function secretReference(login: { readonly [key: string]: Json }): SecretReference | null {
  const { client_secret: own, client_secret_env: variable } = login;
  if (typeof variable === "string") return { kind: "variable", name: variable };
  const name = isJsonObject(own) ? own["secret"] : undefined;
  return typeof name === "string" ? { kind: "secret", name } : null;
}

/** The sealed form: the value together with its origins, so that a change of rows cannot change its destinations. */
export const writeAccountSecret = ({ value, origins }: AccountSecret): string =>
  JSON.stringify({ value, origins });

/** Parses the output of `writeAccountSecret`; null: anything else. */
export function readAccountSecret(text: string): AccountSecret | null {
  const parsed = JSON.parse(text) as Json;
  if (!isJsonObject(parsed) || typeof parsed["value"] !== "string") return null;
  const { value, origins } = parsed;
  return Array.isArray(origins) ? { value, origins: texts(origins) } : null;
}

/** A problem in one part of a secret; it never quotes the value. */
export interface AccountSecretProblem {
  readonly field: "name" | "value" | "origins";
  readonly message: string;
}

/** The problem with a given secret; null: it is valid. */
export function accountSecretProblem(
  secret: AccountSecret & { readonly name: string },
): AccountSecretProblem | null {
  for (const [field, problem] of [
    ["name", nameProblem],
    ["value", valueProblem],
    ["origins", originsProblem],
  ] as const) {
    const message = problem(secret);
    if (message !== null) return { field, message };
  }
  return null;
}

function nameProblem({ name }: { readonly name: string }): string | null {
  if (!new RegExp(SECRET_NAME).test(name))
    return `The name of a secret must consist of letters, digits and \`_\` and must not begin with a digit; ${JSON.stringify(name)} is not valid.`;
  return isServiceVariable(name)
    ? `${name} is the name of a variable of the service itself; choose another name.`
    : null;
}

function valueProblem({ name, value }: AccountSecret & { readonly name: string }): string | null {
  if (value === "") return `The value of ${name} is empty.`;
  if (value.length > limits.accountSecretCharactersMax)
    return `The value of ${name} has more than ${limits.accountSecretCharactersMax} characters.`;
  return /\p{Cc}/u.test(value)
    ? `The value of ${name} contains a line break or another control character.`
    : null;
}

function originsProblem({ name, origins }: AccountSecret & { readonly name: string }): string | null {
  if (origins.length === 0 || origins.length > limits.accountSecretOriginsMax)
    return `${name} needs 1 to ${limits.accountSecretOriginsMax} origins that it may be sent to, such as https://login.example.com.`;
  for (const origin of origins) {
    const wrong = originProblem(origin);
    if (wrong !== null) return `The origin ${JSON.stringify(origin)} of ${name} ${wrong}.`;
  }
  return new Set(origins).size === origins.length ? null : `An origin of ${name} is listed twice.`;
}

/** Hosts to which a request does not leave the machine: only these may use plain http. */
export const LOOPBACK = /^(localhost|127(\.\d{1,3}){3}|\[::1\])$/;

/** The problem with an origin that a secret may be sent to, as a phrase that follows the origin; null: it is valid. */
export function originProblem(origin: string): string | null {
  if (!URL.canParse(origin)) return "is not an origin; write one like https://login.example.com";
  const { protocol, hostname, origin: canonical } = new URL(origin);
  if (protocol !== "https:" && !(protocol === "http:" && LOOPBACK.test(hostname)))
    return "must begin with https:// (plain http is only allowed for loopback hosts)";
  if (hostname.includes("*")) return "contains a wildcard; list every origin";
  return canonical === origin ? null : `must be scheme, host and port only; write ${canonical}`;
}
