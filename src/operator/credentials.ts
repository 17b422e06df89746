import {
  deleteCredentialOf,
  getCredential as readCredential,
  listCredentials,
  listCredentialSessions,
  testLoginOf,
  unlockCredentialOf,
} from "#actions/operators/list-credentials.ts";
import {
  getSession,
  linkSession,
  requestCredential,
  revokeSessionOf,
} from "#actions/operators/manage-sessions.ts";
import type * as contract from "#contract/operator/credentials.ts";
import type { Handler } from "./context.ts";

export const getCredentials: Handler<typeof contract.listCredentials> = async (
  { services, limit },
  { query },
) => await listCredentials(services.db, query, limit);

export const getCredentialSessions: Handler<typeof contract.listCredentialSessions> = async (
  context,
  { query },
) => await listCredentialSessions(context.services.db, query, context.limit);

export const postUnlock: Handler<typeof contract.unlockCredential> = async (
  { services, caller },
  { params },
) => await unlockCredentialOf(services, caller, params["credentialId"] ?? "");

export const postTestLogin: Handler<typeof contract.testLogin> = async ({ services, caller }, { params }) =>
  await testLoginOf(services, caller, params["credentialId"] ?? "");

export const postRequest: Handler<typeof contract.requestCredential> = async (
  { services, caller },
  { params },
) => await requestCredential(services, caller, params["credentialId"] ?? "");

export const deleteCredential: Handler<typeof contract.deleteCredential> = async (context, { params }) =>
  await deleteCredentialOf(context.services, context.caller, params["credentialId"] ?? "");

export const getCredential: Handler<typeof contract.readCredential> = async ({ services }, { params }) =>
  await readCredential(services.db, params["credentialId"] ?? "");

export const getCredentialSession: Handler<typeof contract.readCredentialSession> = async (
  { services },
  { params },
) => await getSession(services.db, params["sessionId"] ?? "");

export const postSessionLink: Handler<typeof contract.linkCredentialSession> = async (
  { services, caller },
  { params },
) => await linkSession(services, caller, params["sessionId"] ?? "");

export const postSessionRevocation: Handler<typeof contract.revokeCredentialSession> = async (
  { services, caller },
  { params },
) => await revokeSessionOf(services, caller, params["sessionId"] ?? "");
