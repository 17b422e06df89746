import { createSessionBy, hostedUrl } from "#actions/sessions/create-credential-session.ts";
import { revokeSession } from "#actions/sessions/revoke-session.ts";
import type { Needs } from "#actions/services.ts";
import { recordAudit } from "#db/audit-entries.ts";
import { findAccountById } from "#db/accounts.ts";
import type { Database } from "#db/connection/pool.ts";
import {
  findSeenCredential,
  findSeenSession,
  type SessionDetail,
} from "#db/operators/operator-credentials.ts";
import { isId } from "#domain/ids.ts";
import { Problem, notFound } from "#domain/problem.ts";
import { checkReturnUrl } from "#domain/return-url.ts";
import { must } from "#lib/assert.ts";
import { showSession } from "./list-credentials.ts";
import { actorOf, type Principal } from "./operator-caller.ts";

/** Throws Problem 404. */
export async function getSession(db: Database, id: string) {
  const session = await requireSession(db, id);
  return {
    ...showSession(session),
    strategy_version: session.strategyVersion,
    return_url: session.returnUrl,
    embedded_session_id: session.embeddedSessionId,
    blueprint: session.blueprint,
    slot: session.slot,
  };
}

/**
 * The link of a pending session, which is derived from its id and not stored. Anyone who has it can fill in the form: it is given out
 * on record. Throws Problem 404, 409.
 */
export async function linkSession(
  services: Needs<"db" | "publicUrl" | "signing">,
  caller: Principal,
  id: string,
): Promise<{ hosted_url: string }> {
  return await services.db.transaction(async (tx) => {
    const { accountId } = requirePending(await requireSession(tx, id));
    await recordAudit(tx, services.signing.audit, {
      accountId,
      actor: actorOf(caller),
      action: "session.link",
      subjectId: id,
    });
    return { hosted_url: hostedUrl(services, id) };
  });
}

/** Throws Problem 404, 409. */
export async function revokeSessionOf(
  services: Needs<"db" | "signing">,
  caller: Principal,
  id: string,
): Promise<void> {
  const { accountId } = requirePending(await requireSession(services.db, id));
  const isRevoked = await revokeSession(services.db, services.signing, { accountId, id }, actorOf(caller));
  // It was completed, or expired, in between.
  if (!isRevoked) throw notPending();
}

/**
 * A session like the one that collected a credential: for its user to type the login again, which becomes a new credential. Its way
 * back is left out if the account's document no longer allows it. Throws Problem 404, 409, 422.
 */
export async function requestCredential(
  services: Needs<"db" | "publicUrl" | "signing">,
  caller: Principal,
  id: string,
): Promise<{ session_id: string }> {
  const credential = isId("credential", id) ? await findSeenCredential(services.db, id) : undefined;
  if (!credential) throw notFound("Credential");
  const session = await requireSession(services.db, credential.sessionId);
  if (session.embeddedSessionId !== null)
    throw new Problem(
      "conflict",
      "The credential was collected by an embedded session: the customer's page asks for the next one.",
    );
  const account = must(await findAccountById(services.db, session.accountId), "the session's account");
  const { returnUrl, strategy, name, sessionMetadata: metadata } = session;
  const mayReturn = returnUrl !== null && checkReturnUrl(returnUrl, account.allowedOrigins).ok;
  const made = await services.db.transaction(
    async (tx) =>
      await createSessionBy(
        services,
        tx,
        { account, actor: actorOf(caller) },
        {
          strategyId: strategy,
          name,
          metadata,
          returnUrl: mayReturn ? returnUrl : null,
          cancelUrl: null,
          expiresInSeconds: null,
        },
      ),
  );
  return { session_id: made.id };
}

async function requireSession(db: Database, id: string): Promise<SessionDetail> {
  const session = isId("credentialSession", id) ? await findSeenSession(db, id) : undefined;
  if (!session) throw notFound("Credential session");
  return session;
}

function requirePending(session: SessionDetail): SessionDetail {
  if (session.embeddedSessionId !== null)
    throw new Problem(
      "conflict",
      "The session is part of an embedded session, which has no link of its own.",
    );
  if (session.status !== "pending") throw notPending();
  return session;
}

const notPending = (): Problem =>
  new Problem(
    "conflict",
    "The session is completed or has expired. The customer's backend can create a new one.",
  );
