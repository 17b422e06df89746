import { isJsonObject, texts, type Json } from "./json.ts";
import { limits } from "./limits.ts";
import { isServiceVariable } from "./service-variable.ts";

/** A secret that an operator keeps for an account, and the only origins that it may be sent to. */
export interface AccountSecret {
  readonly value: string;
  /** Canonical. */
  readonly origins: readonly string[];
}

/** Names of environment variables are names of secrets too: what a variable held can be kept under the same name. */
export const SECRET_NAME = "^[A-Za-z_][A-Za-z0-9_]{0,127}$";

/** How a login's document refers to a secret that it does not hold. */
export type SecretReference =
  | { readonly kind: "secret"; readonly name: string }
  /** Versions from before account secrets: `client_secret_env`. */
  | { readonly kind: "variable"; readonly name: string };

/** What there is for a reference. Secret. */
export type FoundSecret =
  | ({ readonly kind: "found" } & AccountSecret)
  | { readonly kind: "missing" }
  /** Sealed, in a process that opens nothing. */
  | { readonly kind: "sealed" }
  /** Its row was damaged or changed, or this process lacks the key. */
  | { readonly kind: "broken" };

/** Of an `oauth2` login, as its document is written; null: it refers to nothing. */
export function secretReference(login: { readonly [key: string]: Json }): SecretReference | null {
  const { client_secret: own, client_secret_env: variable } = login;
  if (typeof variable === "string") return { kind: "variable", name: variable };
  const name = isJsonObject(own) ? own["secret"] : undefined;
  return typeof name === "string" ? { kind: "secret", name } : null;
}

/** What is sealed: the value together with its origins, so that nobody who changes rows changes where it may go. */
export const writeAccountSecret = ({ value, origins }: AccountSecret): string =>
  JSON.stringify({ value, origins });

/** What `writeAccountSecret` wrote; null: anything else. */
export function readAccountSecret(text: string): AccountSecret | null {
  const parsed = JSON.parse(text) as Json;
  if (!isJsonObject(parsed) || typeof parsed["value"] !== "string") return null;
  const { value, origins } = parsed;
  return Array.isArray(origins) ? { value, origins: texts(origins) } : null;
}

/** A mistake in one of the parts of a secret, told without its value. */
export interface AccountSecretProblem {
  readonly field: "name" | "value" | "origins";
  readonly message: string;
}

/** What is wrong with a secret that somebody gives; null: nothing. */
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
    return `The name of a secret must consist of letters, digits and \`_\` and must not begin with a digit, unlike ${JSON.stringify(name)}.`;
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

/** Hosts to which a request does not leave the machine: the only ones that plain http is for. */
export const LOOPBACK = /^(localhost|127(\.\d{1,3}){3}|\[::1\])$/;

/** What is wrong with an origin that a secret may be sent to, to follow its name; null: nothing. */
export function originProblem(origin: string): string | null {
  if (!URL.canParse(origin)) return "is not an origin; write one like https://login.example.com";
  const { protocol, hostname, origin: canonical } = new URL(origin);
  if (protocol !== "https:" && !(protocol === "http:" && LOOPBACK.test(hostname)))
    return "must begin with https:// (plain http is for loopback hosts)";
  if (hostname.includes("*")) return "contains a wildcard; list every origin";
  return canonical === origin ? null : `must be scheme, host and port only; write ${canonical}`;
}
