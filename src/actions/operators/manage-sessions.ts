import { hostedUrl } from "#actions/sessions/create-credential-session.ts";
import { revokeSession } from "#actions/sessions/revoke-session.ts";
import type { Needs } from "#actions/services.ts";
import { recordAudit } from "#db/audit-entries.ts";
import type { Database } from "#db/connection/pool.ts";
import { findSeenSession, type SessionDetail } from "#db/operators/operator-credentials.ts";
import { isId } from "#domain/ids.ts";
import { Problem, notFound } from "#domain/problem.ts";
import { showSession } from "./list-credentials.ts";
import { actorOf, type Principal } from "./operator-caller.ts";

/** Throws Problem 404. */
export async function getSession(db: Database, id: string) {
  const session = await requireSession(db, id);
  return {
    ...showSession(session),
    strategy_version: session.strategyVersion,
    return_url: session.returnUrl,
    opened_at: session.openedAt?.toISOString() ?? null,
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
