/** A table with signed rows: they decide where secrets go, or who may do what. */
export interface SignedTable {
  readonly table: string;
  /** The columns of the primary key, by their aliases in queries. `@` is replaced by the table. */
  readonly key: Readonly<Record<string, string>>;
  /** The same for the signed columns. A change of these names or their order would invalidate every signature. */
  readonly decides: Readonly<Record<string, string>>;
  /** The kind of the documents, if these rows are their versions; the version is the last part of the key. */
  readonly versionOf?: string;
  /**
   * The last of the signed columns, if it was added when rows were already signed: while it is null, it is not part of the signature, so
   * that those stay valid. A value can't be removed unnoticed, because the signature then has one.
   */
  readonly addedLater?: string;
  /** No audit entry names serials of these rows: an old row is useless on its own. */
  readonly isUnaudited?: true;
  /**
   * The table to whose ids the key refers, if the service never deletes these rows: a row that is in the audit log but missing is
   * then refused.
   */
  readonly keptFor?: string;
}

/** A time in full precision, as text. */
const micros = (column: string): string => `(extract(epoch from ${column}) * 1000000)::bigint::text`;

/**
 * All tables with signed rows. Each has the columns `row_serial` and `row_mac`, an entry here, and a call of `signRow` for each
 * change. The first start of a program with a new entry signs the existing rows. Only `signed-rows.ts` verifies, and all reads of
 * these columns must use it (`test/db/signed-rows-fence.test.ts`).
 */
export const SIGNED_TABLES = {
  vault_key: {
    table: "vault_key",
    key: { kid: "@.kid" },
    decides: { publicJwk: "@.public_jwk", isPrimary: "@.is_primary" },
  },
  // The current version.
  strategy: {
    table: "strategy",
    key: { accountId: "@.account_id", id: "@.id" },
    decides: { version: "@.current_version", retired: "@.retired" },
  },
  strategy_version: {
    table: "strategy_version",
    key: { accountId: "@.account_id", id: "@.strategy_id", version: "@.version" },
    decides: { document: "@.document" },
    versionOf: "strategy",
  },
  blueprint: {
    table: "blueprint",
    key: { id: "@.id" },
    decides: { accountId: "@.account_id", key: "@.key", version: "@.current_version", retired: "@.retired" },
  },
  blueprint_version: {
    table: "blueprint_version",
    key: { id: "@.blueprint_id", version: "@.version" },
    decides: { accountId: "@.account_id", document: "@.document" },
    versionOf: "blueprint",
  },
  // The origins to which a client's secret may be sent, and the id of its value. The value itself is sealed with the same origins.
  account_secret: {
    table: "account_secret",
    key: { accountId: "@.account_id", name: "@.name" },
    decides: { valueId: "@.value_id", origins: "@.origins" },
  },
  // Operators, with what they sign in and in which role.
  operator: {
    table: "operator",
    key: { id: "@.id" },
    decides: {
      email: "@.email",
      role: "@.role",
      passwordHash: "@.password_hash",
      totpNonce: "@.totp_nonce",
      hasSecondFactor: "@.totp_confirmed_at is not null",
      isDisabled: "@.disabled_at is not null",
      oidcIssuer: "@.oidc_issuer",
      oidcSubject: "@.oidc_subject",
      firstPasswordUntil: micros("@.first_password_until"),
      accountIds: "@.account_ids",
    },
    addedLater: "accountIds",
  },
  // Whether an account's changes need two admins, and which admins have agreed to them.
  two_person_rule: {
    table: "two_person_rule",
    key: { accountId: "@.account_id" },
    decides: { isOn: "@.is_on" },
    keptFor: "account",
  },
  proposal: {
    table: "proposal",
    key: { id: "@.id" },
    decides: {
      accountId: "@.account_id",
      kind: "@.kind",
      contentSha256: "encode(sha256(convert_to(@.content, 'UTF8')), 'hex')",
      status: "@.status",
      proposedBy: "@.proposed_by",
      confirmedBy: "@.confirmed_by",
      expiresMicros: micros("@.expires_at"),
    },
  },
  // The session's owner, expiry and factors. A token grants only what its row contains.
  operator_session: {
    table: "operator_session",
    key: { sessionId: "@.id" },
    decides: {
      operatorId: "@.operator_id",
      tokenHash: "@.token_hash",
      signedInBy: "@.signed_in_by",
      openedMicros: micros("@.created_at"),
      endsMicros: micros("@.expires_at"),
      steppedUpMicros: micros("@.stepped_up_at"),
    },
    isUnaudited: true,
  },
  // The role of an operator token, for whom it acts, and its end. Its rows are audited, so that none from before a revocation can be put back.
  operator_token: {
    table: "operator_token",
    key: { tokenId: "@.id" },
    decides: {
      name: "@.name",
      role: "@.role",
      tokenHash: "@.token_hash",
      endsMicros: micros("@.expires_at"),
      isRevoked: "@.revoked_at is not null",
      accountIds: "@.account_ids",
      actsFor: "@.acts_for",
    },
  },
} as const satisfies Readonly<Record<string, SignedTable>>;

export type SignedKind = keyof typeof SIGNED_TABLES;

export const SIGNED_KINDS = Object.keys(SIGNED_TABLES) as readonly SignedKind[];

/** The data of a row, under the names in its kind's `key` and `decides`. */
export type SignedRow = object & { readonly rowSerial: number | null; readonly rowMac: Buffer | null };

/** The columns that `readGenuine` needs in a query: those of a kind's key, of its signed values and of its signature. */
export function signedColumns(kind: SignedKind, alias: string = kind): string {
  return `${decidingColumns(kind, alias)}, ${alias}.row_serial as "rowSerial", ${alias}.row_mac as "rowMac"`;
}

/** Those without the signature, for a query that reads two kinds and names the signatures itself. */
export function decidingColumns(kind: SignedKind, alias: string = kind): string {
  const { key, decides }: SignedTable = SIGNED_TABLES[kind];
  return Object.entries({ ...key, ...decides })
    .map(([name, column]) => `${column.replaceAll("@", alias)} as "${name}"`)
    .join(", ");
}
