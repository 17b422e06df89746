import type { FastifyReply } from "fastify";
import type { HostedSession } from "#actions/hosted-session.ts";
import type { Html } from "#lib/html.ts";
import { hostedHeaders } from "./pages/headers.ts";
import { renderSuccess } from "./pages/message-pages.ts";

export async function sendPage(
  reply: FastifyReply,
  status: number,
  page: Html,
  kind: "form" | "page" = "page",
): Promise<FastifyReply> {
  return (
    reply
      .code(status)
      .headers(hostedHeaders(kind))
      .type("text/html; charset=utf-8")
      // A String object: the framework sends primitive strings.
      .send(page.toString())
  );
}

/** Spec, Credential session: the redirect with `session_id`, or a success page where no return URL was given. */
export async function sendDone(reply: FastifyReply, hosted: HostedSession): Promise<FastifyReply> {
  if (hosted.redirectTo !== null) {
    return reply.headers(hostedHeaders("page")).header("Location", hosted.redirectTo).code(303).send();
  }
  return await sendPage(
    reply,
    200,
    renderSuccess({ accountName: hosted.accountName, strategyName: hosted.strategy.name }),
  );
}
