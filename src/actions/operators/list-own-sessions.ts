import { listOperatorSessions } from "#db/operators/operator-sessions.ts";
import { limits } from "#domain/limits.ts";
import type { Needs } from "#actions/services.ts";
import type { OperatorCaller } from "./operator-caller.ts";

/** The operator's sessions. */
export async function listOwnSessions(services: Needs<"db">, caller: OperatorCaller) {
  const sessions = await listOperatorSessions(services.db, caller.operatorId, limits.operatorIdleMs);
  return sessions.map((session) => ({
    id: session.id,
    is_this: session.id === caller.sessionId,
    created_at: session.createdAt.toISOString(),
    seen_at: session.seenAt.toISOString(),
    expires_at: session.expiresAt.toISOString(),
    address: session.address,
    user_agent: session.userAgent,
    signed_in_by: session.signedInBy,
  }));
}
