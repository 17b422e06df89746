import { assert } from "#lib/assert.ts";

/**
 * What a sealed value is for, as a closed list: a value sealed for one purpose never opens as another. `webhook_secret` is
 * reserved: nothing is sealed for it yet.
 */
export const SEAL_PURPOSES = [
  "credential",
  "login_session",
  "oauth_token",
  "account_secret",
  "webhook_secret",
  "sentinel",
] as const;
export type SealPurpose = (typeof SEAL_PURPOSES)[number];

/** Where a sealed value belongs. A value that was moved to another row, account or strategy does not open. */
export interface SealBinding {
  readonly purpose: SealPurpose;
  readonly accountId: string;
  /** The row that holds the value: a credential's id, a master key's `kid` for a sentinel. */
  readonly rowId: string;
  readonly strategyId: string;
  /**
   * Which of the values that the row has over time: a value that was replaced does not open any more when its bytes are put
   * back. None for what is written once. docs/decisions/0013.
   */
  readonly version?: string | undefined;
}

/** An account's secret belongs to its account and its name; a value that was replaced does not open any more. */
export const accountSecretBinding = (accountId: string, name: string, valueId: string): SealBinding => ({
  purpose: "account_secret",
  accountId,
  // As `SEALED_PLACES` writes it: no two accounts' secrets have the same.
  rowId: `${accountId}/${name}`,
  strategyId: "",
  version: valueId,
});

/** Five parts, and six where the row has several values over time. */
const ONE_VALUE = "v1";
const MANY_VALUES = "v2";

/**
 * The additional authenticated data: format, purpose, account, row, strategy and the value's version if it has one, each as its
 * length in four bytes (big-endian) and its UTF-8 bytes, so that no two bindings have the same bytes. docs/decisions/0013.
 */
export function encodeBinding(binding: SealBinding): Buffer {
  const { purpose, accountId, rowId, strategyId, version } = binding;
  const place = [purpose, accountId, rowId, strategyId];
  const parts = version === undefined ? [ONE_VALUE, ...place] : [MANY_VALUES, ...place, version];
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
