import { issueCsrf, type HostedSession } from "#actions/sessions/hosted-session.ts";
import type { Services } from "#actions/services.ts";
import type { FormIssue } from "#domain/form-issue.ts";
import type { Strategy } from "#domain/strategy.ts";
import { credentialOrigins } from "#strategies/registry.ts";
import { signInHostOf } from "./oauth-routes.ts";
import type { FormNotice, FormPage } from "./pages/form-page.ts";
import { formShape } from "./read-form.ts";
import { targetLogoPath } from "./assets.ts";
import { basePath } from "./send-page.ts";

/** What a form shows in addition to its session. */
export interface Shown {
  readonly values?: ReadonlyMap<string, string> | undefined;
  readonly errors?: ReadonlyMap<string, FormIssue> | undefined;
  readonly notice?: FormNotice | null | undefined;
  /** The link was first opened in another browser. */
  readonly isElsewhere?: boolean | undefined;
}

/** The hosts that may receive a credential of the strategy. */
export const targetHosts = (strategy: Strategy): readonly string[] => [
  ...new Set(credentialOrigins(strategy).map((origin) => new URL(origin).host)),
];

/** The form of a session: the same on a page and in a frame. */
export async function formPage(
  services: Services,
  hosted: HostedSession,
  { values, errors, notice = null, isElsewhere = false }: Shown,
): Promise<Omit<FormPage, "action">> {
  const { session, strategy, brand, redirectTo, cancelTo } = hosted;
  return {
    brand,
    strategyName: strategy.name,
    description: strategy.description,
    targetLogo: targetLogoPath(basePath(services), hosted),
    targetHosts: targetHosts(strategy),
    returnHost: redirectTo === null ? null : new URL(redirectTo).host,
    cancelTo,
    fields: strategy.fields,
    values: values ?? new Map<string, string>(),
    encoding: formShape(strategy.fields).encoding,
    errors: errors ?? new Map<string, FormIssue>(),
    signInHost: signInHostOf(strategy),
    notice,
    isElsewhere,
    csrf: await issueCsrf(services, services.signing.hostedToken(session.id)),
  };
}
