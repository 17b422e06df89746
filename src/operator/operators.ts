import { listAllOperators } from "#actions/operators/list-operators.ts";
import * as manage from "#actions/operators/manage-operators.ts";
import { actorOf } from "#actions/operators/operator-caller.ts";
import type * as contract from "#contract/operator/operators.ts";
import type { Context, Handler } from "./context.ts";

/** The same actions that the command line calls. */
const as = ({ services: { db, signing }, caller }: Context): manage.ManageContext => ({
  db,
  signing,
  actor: actorOf(caller),
});

const idOf = (params: Readonly<Record<string, string>>): string => params["operatorId"] ?? "";

export const getOperators: Handler<typeof contract.listOperators> = async ({ services }) => ({
  items: await listAllOperators(services.db),
});

export const postOperator: Handler<typeof contract.createOperator> = async (context, { body }) =>
  await manage.createOperator(as(context), { ...body, accounts: body.accounts ?? null });

export const postDisable: Handler<typeof contract.disableOperator> = async (context, { params }) =>
  await manage.disableOperator(as(context), idOf(params));

export const postEnable: Handler<typeof contract.enableOperator> = async (context, { params }) =>
  await manage.enableOperator(as(context), idOf(params));

export const postRole: Handler<typeof contract.changeRole> = async (context, { params, body }) =>
  await manage.changeRole(as(context), idOf(params), body.role);

export const postAccounts: Handler<typeof contract.changeOperatorAccounts> = async (
  context,
  { params, body },
) => await manage.limitOperatorTo(as(context), idOf(params), body.accounts);

export const postResetPassword: Handler<typeof contract.resetPassword> = async (context, { params }) => ({
  password: await manage.resetPassword(as(context), idOf(params)),
});

export const postResetSecondFactor: Handler<typeof contract.resetSecondFactor> = async (
  context,
  { params },
) => await manage.resetSecondFactor(as(context), idOf(params));

export const postUnlink: Handler<typeof contract.unlinkOperator> = async (context, { params }) =>
  await manage.unlinkOperator(as(context), idOf(params));
