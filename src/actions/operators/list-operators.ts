import { listOperators } from "#db/operators/operators.ts";
import type { Database } from "#db/connection/pool.ts";

/** All of them, by name. */
export async function listAllOperators(db: Database) {
  return (await listOperators(db)).map((operator) => ({
    id: operator.id,
    email: operator.email,
    role: operator.role,
    accounts: operator.accounts && [...operator.accounts],
    has_second_factor: operator.hasSecondFactor,
    single_sign_on_since: operator.oidcLinkedAt?.toISOString() ?? null,
    created_at: operator.createdAt.toISOString(),
    signed_in_at: operator.signedInAt?.toISOString() ?? null,
    disabled_at: operator.disabledAt?.toISOString() ?? null,
  }));
}
