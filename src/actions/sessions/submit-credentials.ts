import type { FormIssue } from "#domain/form-issue.ts";
import { checkFormValues } from "#domain/form-values.ts";
import { ID_PREFIX } from "#domain/ids.ts";
import { newId } from "#lib/new-id.ts";
import { credentialOrigins, loginTypes } from "#strategies/registry.ts";
import type { Needs } from "#actions/services.ts";
import { vaultCredential, type HostedSession } from "./hosted-session.ts";
import { beginTry } from "./try-login.ts";

export type SubmitOutcome =
  | { readonly kind: "completed" }
  /** It is being tried at the target: `settleTry` has the outcome. */
  | { readonly kind: "checking" }
  /** The target has refused too many logins: no further one is taken for now. */
  | { readonly kind: "limited" }
  /** Problems by field key; nothing was stored. */
  | { readonly kind: "invalid"; readonly errors: ReadonlyMap<string, FormIssue> }
  /** Completed by another submit, or expired, between rendering and now. */
  | { readonly kind: "closed" };

/**
 * Seals the end user's values and completes the session: one conditional write, so that of any number of submits exactly
 * one creates a credential. Spec, Credential session, `pending` → `completed`. With `verify` they are tried first, and the session stays
 * pending until then. `client`: the address that sent them. Throws Problem 429.
 */
export async function submitCredentials(
  services: Needs<"db" | "signing" | "vault" | "news" | "buckets">,
  hosted: HostedSession,
  submitted: ReadonlyMap<string, string>,
  client: string,
): Promise<SubmitOutcome> {
  const { strategy } = hosted;
  const { values, errors } = checkFormValues(strategy.fields, submitted);
  if (errors.size > 0) return { kind: "invalid", errors };
  // A certificate that no login could present is reported now, while its owner can replace it. This sends nothing.
  const { type, ...config } = strategy.login;
  const unfit = loginTypes.get(type)?.checkSubmitted?.(config, values);
  if (unfit && unfit.size > 0) return { kind: "invalid", errors: unfit };
  const content = { values, origins: credentialOrigins(strategy) };
  if (strategy.verify) return { kind: await beginTry(services, hosted, content, client) };
  const won = await vaultCredential(services, hosted, newId(ID_PREFIX.credential), content);
  return { kind: won ? "completed" : "closed" };
}
