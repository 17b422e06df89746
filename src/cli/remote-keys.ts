import type { ListedKey } from "#db/api-keys.ts";
import type { KeyScope } from "#domain/key-scope.ts";
import type { Composition } from "./composition.ts";
import { onRemote } from "./remote.ts";

const SECOND_MS = 1_000;

export interface CreateOptions {
  account: string;
  name: string;
  blueprints?: string[];
  scope?: readonly KeyScope[];
  /** Milliseconds. */
  expires?: number;
  test?: boolean;
  json?: boolean;
}

export interface RotateOptions {
  /** Milliseconds. */
  overlap?: number;
  name?: string;
  scope?: readonly KeyScope[];
  /** Milliseconds. */
  expires?: number;
  json?: boolean;
}

/** A key as `keys list` shows it, of this machine's installation or of another one's. */
export type ShownKey = Omit<ListedKey, "accountId">;

/** What a new key may be given besides its account. */
const optionsOf = ({ name, scope, expires }: Pick<RotateOptions, "name" | "scope" | "expires">) => ({
  ...(name === undefined ? {} : { name }),
  ...(scope === undefined ? {} : { scopes: [...scope] }),
  ...(expires === undefined ? {} : { lifetime_seconds: Math.floor(expires / SECOND_MS) }),
});

/** `latchkey keys create` on the service of another machine. */
export async function createKeyRemotely(
  composition: Composition,
  { account, blueprints, test, ...options }: CreateOptions,
): Promise<{ readonly id: string; readonly key: string }> {
  const { createKey } = await import("#contract/operator/keys.ts");
  const body = {
    account,
    ...optionsOf(options),
    ...(blueprints === undefined ? {} : { blueprints }),
    ...(test ? { test } : {}),
  };
  return await onRemote(composition, async (service) => await service.call(createKey, { body }));
}

/** `latchkey keys rotate`; `overlap` in milliseconds. */
export async function rotateKeyRemotely(
  composition: Composition,
  keyId: string,
  { overlap, ...options }: RotateOptions & { readonly overlap: number },
) {
  const { rotateKey } = await import("#contract/operator/keys.ts");
  const body = { ...optionsOf(options), overlap_seconds: Math.floor(overlap / SECOND_MS) };
  return await onRemote(composition, async (service) => {
    const made = await service.call(rotateKey, { params: { keyId }, body });
    const { id, key, replaces, replaced_ends_at: endsAt } = made;
    return { id, key, replaces, replacedEndsAt: new Date(endsAt) };
  });
}

/** `latchkey keys list`. */
export async function listKeysRemotely(
  composition: Composition,
  account: string | undefined,
): Promise<readonly ShownKey[]> {
  const { listKeys } = await import("#contract/operator/keys.ts");
  const query = account === undefined ? {} : { account };
  const { items } = await onRemote(composition, async (service) => await service.call(listKeys, { query }));
  const timeOf = (text: string | null): Date | null => (text === null ? null : new Date(text));
  return items.map((key) => ({
    id: key.id,
    account: key.account,
    name: key.name,
    blueprintKeys: key.blueprints,
    scopes: key.scopes,
    createdAt: new Date(key.created_at),
    createdBy: key.created_by,
    expiresAt: timeOf(key.expires_at),
    revokedAt: timeOf(key.revoked_at),
    lastUsedAt: timeOf(key.last_used_at),
    replacedBy: key.replaced_by,
    isExpired: key.is_expired,
  }));
}
