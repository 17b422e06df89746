import { assert } from "#lib/assert.ts";

/** What a sealed value is for. A value sealed for one purpose never opens as another. */
export type SealPurpose = "credential" | "login_session" | "oauth_tokens" | "sentinel";

/** Where a sealed value belongs. A value that was moved to another row, account or strategy does not open. */
export interface SealBinding {
  readonly purpose: SealPurpose;
  readonly accountId: string;
  /** The row that holds the value: a credential's id, a master key's `kid` for a sentinel. */
  readonly rowId: string;
  readonly strategyId: string;
}

const VERSION = "v1";

/** The row of a credential's tokens at one version: an older value in the place of a newer one does not open. */
export const tokenRowId = (credentialId: string, version: number): string => `${credentialId}/${version}`;

/**
 * The additional authenticated data: version, purpose, account, row and strategy, each as its length in four bytes (big-endian)
 * and its UTF-8 bytes, so that no two bindings have the same bytes. Design, page 6, T2.
 */
export function encodeBinding(binding: SealBinding): Buffer {
  const parts = [VERSION, binding.purpose, binding.accountId, binding.rowId, binding.strategyId];
  return Buffer.concat(
    parts.flatMap((part) => {
      // A lone surrogate becomes U+FFFD in UTF-8: two names would share their bytes.
      assert(part.isWellFormed(), "a binding is well-formed text");
      const bytes = Buffer.from(part, "utf8");
      const length = Buffer.alloc(4);
      length.writeUInt32BE(bytes.length);
      return [length, bytes];
    }),
  );
}
