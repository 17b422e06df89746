import { countUnreached } from "#db/credentials/credential-binding.ts";
import type { Database } from "#db/connection/pool.ts";
import type { JsonObject } from "#domain/json.ts";
import { readStrategy } from "#domain/strategy.ts";
import { credentialOrigins } from "#strategies/registry.ts";
import type { CheckedDocument } from "./check-config.ts";

/**
 * One sentence for each strategy that would name more origins than before, of the credentials that were connected without them and
 * will not reach them.
 */
export async function warnOfUnreached(
  db: Database,
  steps: readonly { readonly checked: CheckedDocument; readonly before: string | undefined }[],
): Promise<readonly string[]> {
  const warnings: string[] = [];
  for (const { checked, before } of steps) {
    if (checked.kind !== "strategy" || before === undefined) continue;
    const known = credentialOrigins(readStrategy(JSON.parse(before) as JsonObject));
    const added = credentialOrigins(readStrategy(checked.document)).filter(
      (origin) => !known.includes(origin),
    );
    if (added.length === 0) continue;
    const { account, id } = checked;
    const count = await countUnreached(db, { account, strategyId: id, origins: added });
    if (count === 0) continue;
    const which = count === 1 ? "One credential" : `${count} credentials`;
    const [was, its] = count === 1 ? ["was", "Its end user connects"] : ["were", "Their end users connect"];
    warnings.push(
      `${which} of ${account}/${id} ${was} not connected for ${added.join(", ")} and will not be sent there. ${its} again, or ` +
        `\`latchkey credentials rebind --account ${account} --strategy ${id}\` lets ${count === 1 ? "it" : "them"}.`,
    );
  }
  return warnings;
}
