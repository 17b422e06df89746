import type { SessionStatus } from "./credential-session.ts";

/** docs/decisions/0012: an embedded flow has the statuses of a credential session, and its transitions. */
export interface EmbeddedSession {
  readonly id: string;
  readonly status: SessionStatus;
  readonly origin: string;
  readonly blueprintKeys: readonly string[];
  readonly selectedBlueprintKey: string | null;
  /** The first slot's credential, once all are collected. */
  readonly credentialId: string | null;
  /** The credentials of the collected slots, in the order of the slots. */
  readonly credentialIds: Readonly<Record<string, string>>;
  readonly expiresAt: Date;
  readonly completedAt: Date | null;
  readonly createdAt: Date;
}

/** `clientToken`: only in the answer to the creation, and in its replay. */
export function projectEmbeddedSession(session: EmbeddedSession, embedUrl: string, clientToken?: string) {
  const isPending = session.status === "pending";
  return {
    id: session.id,
    status: session.status,
    embed_url: isPending ? embedUrl : null,
    ...(clientToken !== undefined && { client_token: clientToken }),
    origin: session.origin,
    blueprint_keys: session.blueprintKeys,
    selected_blueprint_key: session.selectedBlueprintKey,
    // As for any session: null until `completed`.
    credential_id: session.status === "completed" ? session.credentialId : null,
    credential_ids: session.credentialIds,
    expires_at: session.expiresAt.toISOString(),
    completed_at: session.completedAt?.toISOString() ?? null,
    created_at: session.createdAt.toISOString(),
  };
}
