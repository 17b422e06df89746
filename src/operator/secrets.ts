import { deleteSecretAs, listSecrets, setSecretAs } from "#actions/operators/manage-secrets.ts";
import type * as contract from "#contract/operator/secrets.ts";
import type { Handler } from "./context.ts";

export const getSecrets: Handler<typeof contract.listSecrets> = async ({ services, limit }, { query }) =>
  await listSecrets(services, query.account, limit);

export const postSecret: Handler<typeof contract.setSecret> = async ({ services, caller }, { body }) =>
  await setSecretAs(services, caller, body);

export const deleteSecret: Handler<typeof contract.deleteSecret> = async (
  { services, caller },
  { params, query },
) =>
  await deleteSecretAs(services, caller, {
    account: params["account"] ?? "",
    name: params["secret"] ?? "",
    force: query.force === true,
  });
