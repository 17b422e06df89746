import type { SealBinding } from "#vault/binding.ts";
import { VaultError } from "#vault/vault.ts";
import { RunFailure } from "./run-ended.ts";
import type { EngineServices } from "./services.ts";

/** Design, page 6, T2: what was moved, changed or put back fails the run before the target hears anything. */
export async function openSealed(
  services: EngineServices,
  what: string,
  stored: { readonly sealed: Uint8Array; readonly kid: string },
  boundTo: SealBinding,
): Promise<Uint8Array> {
  try {
    return await services.vault.open(stored.sealed, boundTo);
  } catch (error) {
    if (!(error instanceof VaultError)) throw error;
    throw new RunFailure(
      "vault",
      services.vault.holds(stored.kid)
        ? `The ${what} of ${boundTo.rowId} does not open: its row was damaged or changed. \`latchkey doctor\` lists such rows.`
        : `This worker does not hold master key ${stored.kid}, with which the ${what} of ${boundTo.rowId} is sealed. ` +
            "Give it the keyset that holds it and start it again.",
    );
  }
}
