import { findStrategy, type BlueprintVersion } from "#db/config-documents.ts";
import { selectBlueprint, type NewSlot } from "#db/credentials/embedded-sessions.ts";
import type { Database } from "#db/connection/pool.ts";
import { ID_PREFIX } from "#domain/ids.ts";
import { must } from "#lib/assert.ts";
import { newId } from "#lib/new-id.ts";
import type { Needs } from "#actions/services.ts";

/** Selects the Blueprint whose slots an embedded flow collects, with the current versions of their strategies. */
export async function chooseBlueprint(
  services: Needs<"signing">,
  tx: Database,
  flow: { readonly accountId: string; readonly id: string },
  { blueprint }: BlueprintVersion,
): Promise<boolean> {
  const slots: NewSlot[] = [];
  for (const { slot, strategyId } of blueprint.credentials) {
    const { version } = must(await findStrategy(tx, flow.accountId, strategyId), "a slot's strategy");
    const sessionId = newId(ID_PREFIX.credentialSession);
    const tokenLookup = services.signing.tokenLookup(services.signing.hostedToken(sessionId));
    slots.push({ sessionId, tokenLookup, slot, strategyId, strategyVersion: version });
  }
  return await selectBlueprint(tx, { ...flow, blueprintKey: blueprint.key }, slots);
}
