import { createApiKey } from "#actions/keys/create-api-key.ts";
import { listApiKeys, revokeKeyOf } from "#actions/operators/list-api-keys.ts";
import { actorOf } from "#actions/operators/operator-caller.ts";
import { rotateApiKey } from "#actions/keys/rotate-api-key.ts";
import type * as contract from "#contract/operator/keys.ts";
import type { Handler } from "./context.ts";

const msOf = (seconds: number | undefined): number | null => (seconds === undefined ? null : seconds * 1_000);

export const getKeys: Handler<typeof contract.listKeys> = async ({ services, limit }, { query }) => ({
  items: await listApiKeys(services.db, query.account, limit),
});

export const postKey: Handler<typeof contract.createKey> = async ({ services, caller }, { body }) =>
  await createApiKey(
    services.db,
    services.signing,
    {
      account: body.account,
      name: body.name ?? "",
      blueprintKeys: body.blueprints ?? null,
      scopes: body.scopes ?? null,
      lifetimeMs: msOf(body.lifetime_seconds),
      isTest: body.test ?? false,
    },
    actorOf(caller),
  );

export const postRotate: Handler<typeof contract.rotateKey> = async (
  { services, caller },
  { params, body },
) => {
  const { replacedEndsAt, ...made } = await rotateApiKey(
    services.db,
    services.signing,
    {
      keyId: params["keyId"] ?? "",
      overlapMs: body.overlap_seconds * 1_000,
      name: body.name ?? null,
      scopes: body.scopes ?? null,
      lifetimeMs: msOf(body.lifetime_seconds),
    },
    actorOf(caller),
  );
  return { ...made, replaced_ends_at: replacedEndsAt.toISOString() };
};

export const postRevoke: Handler<typeof contract.revokeKey> = async ({ services, caller }, { params }) =>
  await revokeKeyOf(services, caller, params["keyId"] ?? "");
