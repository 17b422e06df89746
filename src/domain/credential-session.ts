import { readSessionMetadata } from "./session-metadata.ts";

/** Spec, Credential session `status`. `expired` is decided by the clock at read, never stored (docs/decisions/0017). */
export const SESSION_STATUSES = ["pending", "completed", "expired"] as const;
export type SessionStatus = (typeof SESSION_STATUSES)[number];

export const SESSION_TRANSITIONS = {
  pending: ["completed", "expired"],
  completed: [],
  expired: [],
} as const satisfies Record<SessionStatus, readonly SessionStatus[]>;

export interface CredentialSession {
  readonly id: string;
  readonly status: SessionStatus;
  readonly returnUrl: string | null;
  readonly strategyId: string;
  readonly credentialId: string | null;
  readonly expiresAt: Date;
  readonly completedAt: Date | null;
  readonly createdAt: Date;
  /** The caller's own references, as JSON text; null: none were given. */
  readonly metadata: string | null;
  /** Null: none was given. */
  readonly cancelUrl: string | null;
}

/**
 * Spec, Credential session: all nine fields always present; `name` is never returned. Those of our extensions only if the request had
 * them (docs/decisions/0012).
 */
export function projectSession(session: CredentialSession, hostedUrl: string) {
  return {
    id: session.id,
    status: session.status,
    // Spec, Credential session: populated only while `pending`.
    hosted_url: session.status === "pending" ? hostedUrl : null,
    return_url: session.returnUrl,
    strategy_id: session.strategyId,
    // Spec, Credential session: null until `completed`.
    credential_id: session.status === "completed" ? session.credentialId : null,
    expires_at: session.expiresAt.toISOString(),
    completed_at: session.completedAt?.toISOString() ?? null,
    created_at: session.createdAt.toISOString(),
    ...(session.metadata === null ? {} : { metadata: readSessionMetadata(session.metadata) }),
    ...(session.cancelUrl === null ? {} : { cancel_url: session.cancelUrl }),
  };
}
