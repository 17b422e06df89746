import * as accounts from "#actions/operators/change-account.ts";
import type * as contract from "#contract/operator/accounts.ts";
import type { Handler } from "./context.ts";

export const getAccounts: Handler<typeof contract.listAccounts> = async ({ services, limit }) => ({
  items: await accounts.listAccounts(services.db, limit),
});

export const getAccount: Handler<typeof contract.readAccount> = async ({ services }, { params }) =>
  await accounts.getAccount(services.db, params["account"] ?? "");

export const postAccount: Handler<typeof contract.changeAccount> = async (
  { services, caller },
  { params, body },
) => await accounts.changeAccount(services, caller, params["account"] ?? "", body);
