import { readClockText } from "#db/connection/clock.ts";
import { findStrategy } from "#db/config-documents.ts";
import { recordAudit } from "#db/audit-entries.ts";
import { insertSession } from "#db/credentials/credential-sessions.ts";
import type { Database } from "#db/connection/pool.ts";
import { projectSession } from "#domain/credential-session.ts";
import { ID_PREFIX } from "#domain/ids.ts";
import { isWellFormedName } from "#domain/names.ts";
import { invalidField } from "#domain/problem.ts";
import { checkReturnUrl } from "#domain/return-url.ts";
import { failpoint } from "#lib/failpoint.ts";
import { newId } from "#lib/new-id.ts";
import type { Answer } from "#actions/replay-or-run.ts";
import type { Caller, Needs } from "#actions/services.ts";

export interface SessionRequest {
  readonly strategyId: string;
  readonly name: string | null;
  readonly returnUrl: string | null;
}

/** `POST /credential-sessions`, inside the caller's transaction. Throws Problem 422 naming the field. */
export async function createCredentialSession(
  services: Needs<"publicUrl" | "signing">,
  tx: Database,
  caller: Caller,
  request: SessionRequest,
): Promise<Answer> {
  if (request.name !== null && !isWellFormedName(request.name)) {
    throw invalidField("name", "`name` must have at most 255 characters and no U+0000.");
  }
  if (request.returnUrl !== null) {
    const checked = checkReturnUrl(request.returnUrl, caller.account.allowedOrigins);
    if (!checked.ok) throw invalidField("return_url", checked.reason);
  }
  // Statements that don't depend on each other are one round trip.
  const [strategy, nowText] = await Promise.all([
    findStrategy(tx, caller.account.id, request.strategyId),
    readClockText(tx),
  ]);
  if (!strategy || strategy.retired) {
    throw invalidField("strategy_id", "`strategy_id` is not an authentication strategy of this account.");
  }
  const id = newId(ID_PREFIX.credentialSession);
  const token = services.signing.hostedToken(id);
  const inserted = insertSession(tx, {
    id,
    accountId: caller.account.id,
    strategyId: strategy.strategy.id,
    strategyVersion: strategy.version,
    name: request.name,
    returnUrl: request.returnUrl,
    tokenLookup: services.signing.tokenLookup(token),
    lifetimeMs: caller.account.sessionLifetimeMs,
  });
  const recorded = recordAudit(
    tx,
    services.signing.audit,
    {
      accountId: caller.account.id,
      actor: { kind: "api_key", id: caller.keyId },
      action: "session.create",
      subjectId: id,
      detail: { strategy: strategy.strategy.id },
    },
    nowText,
  );
  const [session] = await Promise.all([inserted, recorded]);
  await failpoint("session.after_insert");
  const body = JSON.stringify(projectSession(session, hostedUrl(services, id)));
  return { status: 201, body, tokenOfSession: id };
}

/** Spec, Credential session: the form's URL. It is derived from the id and not stored. */
export function hostedUrl(services: Needs<"publicUrl" | "signing">, sessionId: string): string {
  return `${services.publicUrl()}/connect/${services.signing.hostedToken(sessionId)}`;
}
