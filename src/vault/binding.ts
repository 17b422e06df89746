import { assert } from "#lib/assert.ts";

/** The purposes of sealed values, a closed list: a value sealed for one purpose can't be opened for another. */
export const SEAL_PURPOSES = [
  "credential",
  "login_session",
  "oauth_token",
  "account_secret",
  "webhook_secret",
  "sentinel",
  "backup",
] as const;
export type SealPurpose = (typeof SEAL_PURPOSES)[number];

/** Where a sealed value belongs. A value that was moved to another row, account or strategy can't be opened. */
export interface SealBinding {
  readonly purpose: SealPurpose;
  readonly accountId: string;
  /** The row that holds the value: a credential's id, a master key's `kid` for a sentinel. */
  readonly rowId: string;
  readonly strategyId: string;
  /**
   * The version, for a row whose value is replaced over time: an earlier value can't be opened even if its bytes are restored.
   * Absent for a value that is written once. docs/decisions/0013.
   */
  readonly version?: string | undefined;
}

/** An account secret is bound to its account and name. A value that was replaced can't be opened any more. */
export const accountSecretBinding = (accountId: string, name: string, valueId: string): SealBinding => ({
  purpose: "account_secret",
  accountId,
  // As in `SEALED_PLACES`, so that it is unique among the secrets of all accounts.
  rowId: `${accountId}/${name}`,
  strategyId: "",
  version: valueId,
});

/**
 * A webhook secret is bound to its account and endpoint; `accountId` is null for an endpoint of the operators. It is written once: a
 * rotation adds another row.
 */
export const webhookSecretBinding = (
  accountId: string | null,
  secretId: string,
  endpointId: string,
): SealBinding => ({
  purpose: "webhook_secret",
  accountId: accountId ?? "installation",
  rowId: secretId,
  // The part of what the value serves.
  strategyId: endpointId,
});

/** Five parts; six for a row whose value is replaced over time. */
const ONE_VALUE = "v1";
const MANY_VALUES = "v2";

/**
 * The additional authenticated data: format, purpose, account, row, strategy and, if there is one, the value's version. Each part
 * is encoded as its length in four bytes (big-endian) and its UTF-8 bytes, so no two bindings have the same encoding.
 * docs/decisions/0013.
 */
export function encodeBinding(binding: SealBinding): Buffer {
  const { purpose, accountId, rowId, strategyId, version } = binding;
  const place = [purpose, accountId, rowId, strategyId];
  const parts = version === undefined ? [ONE_VALUE, ...place] : [MANY_VALUES, ...place, version];
  return Buffer.concat(
    parts.flatMap((part) => {
      // A lone surrogate becomes U+FFFD in UTF-8, so two names could have the same bytes.
      assert(part.isWellFormed(), "a binding is well-formed text");
      const bytes = Buffer.from(part, "utf8");
      const length = Buffer.alloc(4);
      length.writeUInt32BE(bytes.length);
      return [length, bytes];
    }),
  );
}
