import {
  deleteCredentialOf,
  listCredentials,
  listCredentialSessions,
  testLoginOf,
  unlockCredentialOf,
} from "#actions/operators/list-credentials.ts";
import type * as contract from "#contract/operator/credentials.ts";
import type { Handler } from "./context.ts";

export const getCredentials: Handler<typeof contract.listCredentials> = async ({ services }, { query }) =>
  await listCredentials(services.db, query);

export const getCredentialSessions: Handler<typeof contract.listCredentialSessions> = async (
  context,
  { query },
) => await listCredentialSessions(context.services.db, query);

export const postUnlock: Handler<typeof contract.unlockCredential> = async (
  { services, caller },
  { params },
) => await unlockCredentialOf(services, caller, params["credentialId"] ?? "");

export const postTestLogin: Handler<typeof contract.testLogin> = async ({ services, caller }, { params }) =>
  await testLoginOf(services, caller, params["credentialId"] ?? "");

export const deleteCredential: Handler<typeof contract.deleteCredential> = async (context, { params }) =>
  await deleteCredentialOf(context.services, context.caller, params["credentialId"] ?? "");
