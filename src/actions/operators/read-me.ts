import { countRecoveryCodes } from "#db/operators/operators.ts";
import { isOfInstallation, mayDo, PERMISSIONS, type Permission } from "#domain/operator.ts";
import type { Needs } from "#actions/services.ts";
import { namesOfLimit } from "./account-limit.ts";
import { needOf, type OperatorCaller } from "./operator-caller.ts";

/** The signed-in operator, with everything that the dashboard needs. */
export async function readMe(services: Needs<"db" | "signing">, caller: OperatorCaller, token: string) {
  const names = await namesOfLimit(services.db, caller);
  return {
    id: caller.operatorId,
    email: caller.email,
    role: caller.role,
    accounts: names && [...names],
    has_second_factor: caller.hasSecondFactor,
    is_stepped_up: caller.isSteppedUp,
    signed_in_by: caller.signedInBy,
    needs: needOf(caller),
    step_up_by: [
      ...(caller.hasSecondFactor ? (["code"] as const) : []),
      ...(caller.isVouchedFor ? (["oidc"] as const) : []),
    ],
    permissions: (Object.keys(PERMISSIONS) as Permission[]).filter(
      (each) => mayDo(caller.role, each) && (caller.accountIds === null || !isOfInstallation(each)),
    ),
    session_id: caller.sessionId,
    session_expires_at: caller.expiresAt.toISOString(),
    recovery_codes_left: await countRecoveryCodes(services.db, caller.operatorId),
    csrf_token: services.signing.operators.csrf(token),
  };
}
