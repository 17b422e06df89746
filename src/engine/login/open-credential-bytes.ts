import { UnknownContent } from "#domain/destination.ts";
import type { SealBinding } from "#vault/binding.ts";
import { VaultError } from "#vault/vault.ts";
import { RunFailure } from "#engine/run-ended.ts";
import type { EngineServices } from "#engine/services.ts";

/**
 * Opens a value, reads its plain text and zeroes its bytes. docs/decisions/0013: a value that was moved, changed or restored fails the
 * run before anything is sent to the target.
 */
export async function openSealed<T>(
  services: EngineServices,
  what: string,
  stored: { readonly sealed: Uint8Array; readonly kid: string },
  boundTo: SealBinding,
  read: (plain: string) => T,
): Promise<T> {
  try {
    const plain = await services.vault.open(stored.sealed, boundTo);
    try {
      return read(Buffer.from(plain).toString("utf8"));
    } finally {
      plain.fill(0);
    }
  } catch (error) {
    if (error instanceof UnknownContent)
      throw new RunFailure(
        "vault",
        `The ${what} of ${boundTo.rowId} has an unknown format: a later release sealed it, or it was written from outside the service.`,
      );
    if (!(error instanceof VaultError)) throw error;
    throw new RunFailure(
      "vault",
      services.vault.holds(stored.kid)
        ? `The ${what} of ${boundTo.rowId} can't be opened: its row was damaged or changed. \`latchkey doctor\` lists such rows.`
        : `This worker does not hold master key ${stored.kid}, with which the ${what} of ${boundTo.rowId} is sealed. ` +
            "Give it the keyset that holds it and start it again.",
    );
  }
}

/** The origins to which an opened value may be sent. Throws RunFailure if it has none. */
export function mustBeBound(
  what: string,
  credentialId: string,
  origins: readonly string[] | null,
): readonly string[] {
  if (origins !== null) return origins;
  throw new RunFailure(
    "vault",
    `The ${what} of ${credentialId} does not say where it may be sent: it was sealed before the credentials of this installation ` +
      "were bound to their origins and restored since then, or by an older process. The end user connects again, or " +
      `\`latchkey credentials rebind ${credentialId}\` binds it to what its strategy names.`,
  );
}
