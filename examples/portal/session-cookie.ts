import type { FastifyReply, FastifyRequest } from "fastify";
import type { Session, Sessions, Stage } from "./sessions.ts";

const COOKIE = "northwind_session";

/** The session that the request's cookie names, if it is alive. */
export function sessionOf(request: FastifyRequest, sessions: Sessions): Session | undefined {
  for (const pair of (request.headers.cookie ?? "").split(";")) {
    const [name, value] = pair.trim().split("=", 2);
    if (name === COOKIE) return sessions.find(value);
  }
  return undefined;
}

/** Opens a session of that stage under a new id and forgets the one before it, so that a planted id is worth nothing. */
export function enterStage(
  reply: FastifyReply,
  sessions: Sessions,
  before: Session | undefined,
  stage: Stage,
): Session {
  if (before) sessions.close(before.id);
  const session = sessions.open(stage);
  reply.header("set-cookie", `${COOKIE}=${session.id}; Path=/; HttpOnly; SameSite=Lax`);
  return session;
}

export function forgetSession(reply: FastifyReply, sessions: Sessions, session: Session): void {
  sessions.close(session.id);
  reply.header("set-cookie", `${COOKIE}=; Path=/; HttpOnly; SameSite=Lax; Max-Age=0`);
}
