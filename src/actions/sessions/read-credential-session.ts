import { findSession } from "#db/credentials/credential-sessions.ts";
import { projectSession } from "#domain/credential-session.ts";
import { isId } from "#domain/ids.ts";
import { notFound } from "#domain/problem.ts";
import { hostedUrl } from "./create-credential-session.ts";
import type { Caller, Needs } from "#actions/services.ts";

/** `GET /credential-sessions/{id}`. Throws Problem 404. */
export async function readCredentialSession(
  services: Needs<"db" | "publicUrl" | "signing">,
  caller: Caller,
  id: string,
) {
  const session = isId("credentialSession", id)
    ? await findSession(services.db, caller.account.id, id)
    : undefined;
  if (!session) throw notFound("Credential session");
  return projectSession(session, hostedUrl(services, id));
}
