import { toYaml } from "#actions/config/export-config.ts";
import { accountIdsOf, requireAccount } from "#actions/operator-error.ts";
import type { Needs } from "#actions/services.ts";
import { findAccountDocument, listSeenAccounts, type SeenAccount } from "#db/operators/operator-accounts.ts";
import type { Database } from "#db/connection/pool.ts";
import { isTwoPerson } from "#db/operators/two-person-rules.ts";
import { readAccount, readReviewStepUp } from "#domain/account.ts";
import { isJsonObject, type Json, type JsonObject } from "#domain/json.ts";
import { must } from "#lib/assert.ts";
import { applyTyped } from "./change-config.ts";
import type { Principal } from "./operator-caller.ts";

const showAccount = (row: SeenAccount) => ({
  account: row.account,
  id: row.id,
  name: row.name,
  created_at: row.createdAt.toISOString(),
  updated_at: row.updatedAt.toISOString(),
});

/** All accounts but test accounts, or those in `limit`, by name. */
export const listAccounts = async (db: Database, limit: readonly string[] | null) =>
  (await listSeenAccounts(db, await accountIdsOf(db, undefined, limit))).map(showAccount);

/** Throws OperatorError. */
export async function getAccount(db: Database, slug: string) {
  const row = await requireDocument(db, slug);
  const document = JSON.parse(row.document) as JsonObject;
  const { allowedOrigins, embedOrigins, sessionLifetimeMs, retentionMs, concurrency, rateLimit } =
    readAccount(document);
  const branding = isJsonObject(document["branding"]) ? document["branding"] : {};
  const textOf = (key: string): string | null => {
    const value = branding[key];
    return typeof value === "string" ? value : null;
  };
  return {
    ...showAccount(row),
    allowed_origins: [...allowedOrigins],
    embed_origins: Array.isArray(document["embed_origins"]) ? [...embedOrigins] : null,
    session_lifetime_ms: sessionLifetimeMs,
    retention_ms: retentionMs,
    concurrency,
    rate_limit: rateLimit && { per_second: rateLimit.perSecond, burst: rateLimit.burst },
    review_step_up: readReviewStepUp(document),
    two_person: await isTwoPerson(db, row.id),
    branding: {
      name: textOf("name"),
      accent_color: textOf("accent_color"),
      support_url: textOf("support_url"),
      logo_url: textOf("logo_url"),
    },
    yaml: toYaml(row.document),
  };
}

async function requireDocument(db: Database, slug: string): Promise<SeenAccount> {
  await requireAccount(db, slug);
  return must(await findAccountDocument(db, slug), "the account's document");
}

/** An operator's changes; null removes a key of the branding, the rate limit, or the origins of frames of their own. */
export interface AccountChange {
  readonly rate_limit?: { readonly per_second: number; readonly burst: number } | null;
  readonly embed_origins?: readonly string[] | null;
  readonly branding?: Readonly<Record<string, string | null>>;
  readonly [key: string]: unknown;
}

/** Applies the account's document with the changes, like any other document. Throws Problem 422, OperatorError. */
export async function changeAccount(
  services: Needs<"db" | "secretSources" | "signing">,
  caller: Principal,
  slug: string,
  { branding, rate_limit: rateLimit, embed_origins: frames, ...change }: AccountChange,
) {
  const { document } = await requireDocument(services.db, slug);
  const before = JSON.parse(document) as JsonObject;
  const kept = isJsonObject(before["branding"]) ? before["branding"] : {};
  const merged = Object.entries({ ...kept, ...branding }).filter(([, value]) => value !== null);
  const { branding: _replaced, embed_origins: framesBefore, ...rest } = before;
  const framesAfter = frames === undefined ? framesBefore : frames;
  const changed: Record<string, Json> = {
    ...rest,
    ...(change as JsonObject),
    ...(rateLimit === undefined ? {} : { rate_limit: rateLimit ?? "off" }),
    ...(framesAfter === undefined || framesAfter === null ? {} : { embed_origins: framesAfter as Json }),
    ...(merged.length === 0 ? {} : { branding: Object.fromEntries(merged) as JsonObject }),
  };
  return await applyTyped(services, caller, [{ file: `account ${slug}`, text: JSON.stringify(changed) }]);
}
