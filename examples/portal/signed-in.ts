import type { FastifyReply, FastifyRequest } from "fastify";
import type { PortalAccount } from "./accounts.ts";
import { sessionOf } from "./session-cookie.ts";
import type { Session, Sessions } from "./sessions.ts";

/** Who sends a request, when somebody is signed in. */
export type SignedIn = (
  request: FastifyRequest,
) => { readonly session: Session; readonly account: PortalAccount } | undefined;

export function signedInBy(sessions: Sessions, accounts: readonly PortalAccount[]): SignedIn {
  return (request) => {
    const session = sessionOf(request, sessions);
    const account =
      session?.stage === "signed_in"
        ? accounts.find(({ username }) => username === session.username)
        : undefined;
    return session && account ? { session, account } : undefined;
  };
}

export const unauthenticated = (reply: FastifyReply): FastifyReply =>
  reply.code(401).send({ error: "Please sign in" });
