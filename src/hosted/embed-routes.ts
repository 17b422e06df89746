import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { findFlow, findFrame } from "#actions/sessions/embedded-flow.ts";
import { throttleForm } from "#actions/keys/limit-rate.ts";
import type { Services } from "#actions/services.ts";
import { leave } from "#actions/sessions/redirect-to-provider.ts";
import { Problem } from "#domain/problem.ts";
import { describeError } from "#lib/log.ts";
import { languageOf, sendFrameEnd } from "./frame-answer.ts";
import { check, choose, refresh, submit, watchSignIn } from "./frame-steps.ts";
import type { Ask } from "./frame-views.ts";
import { sendToTarget } from "./oauth-routes.ts";
import { renderForbidden, renderUnknown } from "./pages/message-pages.ts";
import { renderFrame } from "./pages/frame-pages.ts";
import { renderOpening } from "./pages/window-pages.ts";
import { formShape, readForm } from "./read-form.ts";
import { isSameOrigin, sendPage, shellFor, type Handler } from "./send-page.ts";
import { chosenLanguage } from "./texts/wordings.ts";
import { sendWidget } from "./widget.ts";

const EMBED_PREFIX = "/embed/v1";

/** docs/decisions/0019: the frame of an embedded flow, and the widget that puts it into a customer's page. */
export function registerEmbed(app: FastifyInstance, services: Services): void {
  app.register(
    async (pages) => {
      pages.setNotFoundHandler(
        async (request, reply) => await sendPage(reply, 404, renderUnknown(shellFor(services, request))),
      );
      pages.setErrorHandler(async (error, request, reply) => {
        const status = error instanceof Problem ? error.status : 500;
        if (error instanceof Problem) reply.headers(error.headers);
        else
          services.log.error({ requestId: request.id, ...describeError(error) }, "a frame's request failed");
        return await sendFrameEnd(services, request, reply, status, "failed");
      });
      pages.route({
        method: ["GET", "HEAD"],
        url: "/latchkey.js",
        handler: async (request, reply) => await sendWidget(request, reply),
      });
      pages.route({
        method: ["GET", "HEAD"],
        url: "/:session",
        handler: async (request, reply) => await getFrame(services, request, reply),
      });
      pages.get("/opening", async (request, reply) => await getOpening(services, request, reply));
      const step = (name: string, take: (ask: Ask) => Promise<FastifyReply>): void => {
        pages.post(
          `/:session/${name}`,
          async (request, reply) => await withFlow(services, request, reply, take),
        );
      };
      step("view", refresh);
      step("choose", choose);
      step("submit", submit);
      step("sign-in", watchSignIn);
      step("check", check);
      pages.post("/:session/leave", async (request, reply) => await postLeave(services, request, reply));
    },
    { prefix: EMBED_PREFIX },
  );
}

const sessionOf = (request: FastifyRequest): string => (request.params as { session: string }).session;

/** Shows nothing of a session and changes nothing. Only the session's page can frame it, and by itself it does nothing. */
const getFrame: Handler = async (services, request, reply) => {
  const id = sessionOf(request);
  const session = await findFrame(services, id);
  const place = request.headers["sec-fetch-dest"];
  if (!session || (place !== undefined && place !== "iframe"))
    return await sendPage(reply, 404, renderUnknown(shellFor(services, request)));
  const { origin } = session;
  const shell = shellFor(services, request, { language: languageOf(session.locale) });
  const path = `${new URL(services.publicUrl()).pathname.replace(/\/$/, "")}${EMBED_PREFIX}/${id}`;
  return await sendPage(reply, 200, renderFrame(shell, { sessionId: id, origin, path }), { frameOf: origin });
};

/** The page of a window before it is sent to the target; it shows nothing of a session. */
const getOpening: Handler = async (services, request, reply) =>
  await sendPage(reply, 200, renderOpening(shellFor(services, request)), "window");

/** Requests of the frame's script: same-origin, with the client token in a header. Cookies are ignored. */
async function withFlow(
  services: Services,
  request: FastifyRequest,
  reply: FastifyReply,
  take: (ask: Ask) => Promise<FastifyReply>,
): Promise<FastifyReply> {
  if (!isSameOrigin(services, request)) return await sendFrameEnd(services, request, reply, 403, "internal");
  throttleForm(services, "address", services.clientOf(request.raw));
  const token = /^Bearer ([\w-]{43})$/.exec(request.headers.authorization ?? "")?.[1] ?? "";
  const flow = await findFlow(services, sessionOf(request), token);
  if (!flow) return await sendFrameEnd(services, request, reply, 404, "internal");
  throttleForm(services, "link", flow.session.id);
  return await take({ services, request, reply, flow });
}

/**
 * Redirects the window that a frame has opened to the target. It is a top-level window, so that the cookie for the way back is
 * not a third-party cookie. It needs no token, because its URL is signed by us.
 */
const postLeave: Handler = async (services, request, reply) => {
  const forbidden = async (): Promise<FastifyReply> =>
    await sendPage(reply, 403, renderForbidden(shellFor(services, request)));
  if (!isSameOrigin(services, request)) return await forbidden();
  throttleForm(services, "address", services.clientOf(request.raw));
  throttleForm(services, "link", sessionOf(request));
  const form = await readForm(request, formShape([]));
  const redirect = leave(services, sessionOf(request), {
    state: form.get("state") ?? "",
    url: form.get("url") ?? "",
    proof: form.get("proof") ?? "",
  });
  if (!redirect) return await forbidden();
  const language = chosenLanguage(request.query);
  return await sendToTarget(services, reply, redirect, { kind: "window", language });
};
