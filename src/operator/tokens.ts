import { createOperatorToken, listTokens, revokeTokenById } from "#actions/operators/manage-tokens.ts";
import { actorOf } from "#actions/operators/operator-caller.ts";
import type * as contract from "#contract/operator/tokens.ts";
import { Problem } from "#domain/problem.ts";
import type { Context, Handler } from "./context.ts";

const as = ({ services: { db, signing }, caller }: Context) => ({ db, signing, actor: actorOf(caller) });

export const getTokens: Handler<typeof contract.listTokens> = async ({ services }) => ({
  items: await listTokens(services.db),
});

export const postToken: Handler<typeof contract.createToken> = async (context, { body }) => {
  const { id, token, expiresAt } = await createOperatorToken(as(context), {
    name: body.name,
    role: body.role,
    accounts: body.accounts ?? null,
    lifetimeMs: body.lifetime_seconds * 1_000,
  });
  return { id, token, expires_at: expiresAt.toISOString() };
};

export const deleteOwnToken: Handler<typeof contract.endOwnToken> = async (context) => {
  const { caller } = context;
  if (caller.kind !== "token")
    throw new Problem(
      "conflict",
      "The request has no operator token. DELETE /operator/v1/session ends a session.",
    );
  await revokeTokenById(as(context), caller.tokenId);
};

export const postRevokeToken: Handler<typeof contract.revokeToken> = async (context, { params }) =>
  await revokeTokenById(as(context), params["tokenId"] ?? "");
