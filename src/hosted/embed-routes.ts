import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { findFlow, findFrame, type Flow } from "#actions/sessions/embedded-flow.ts";
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
import { waitMsOf } from "./send-fault.ts";
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
        const flow = await flowOf(services, request);
        const end = status === 429 ? "too_often" : "failed";
        return await sendFrameEnd(services, request, reply, { flow, status, end, waitMs: waitMsOf(error) });
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
      pages.get("/:session/opening", async (request, reply) => await getOpening(services, request, reply));
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

/** Whose frame it is. The database may be what fails. */
const flowOf = async (services: Services, request: FastifyRequest): Promise<Flow | null> =>
  (await findFrame(services, sessionOf(request)).catch(() => undefined)) ?? null;

/** Shows nothing of a session but its sender, and changes nothing. Only the session's page can frame it, and by itself it does nothing. */
const getFrame: Handler = async (services, request, reply) => {
  const id = sessionOf(request);
  const frame = await findFrame(services, id);
  const place = request.headers["sec-fetch-dest"];
  if (!frame || (place !== undefined && place !== "iframe"))
    return await sendPage(reply, 404, renderUnknown(shellFor(services, request)));
  const { session, brand } = frame;
  const { origin } = session;
  const shell = shellFor(services, request, { brand, language: languageOf(session.locale) });
  const path = `${new URL(services.publicUrl()).pathname.replace(/\/$/, "")}${EMBED_PREFIX}/${id}`;
  return await sendPage(reply, 200, renderFrame(shell, { sessionId: id, origin, path }), { frameOf: origin });
};

/** The page of a window before it is sent to the target; it shows nothing of a session but its sender. */
const getOpening: Handler = async (services, request, reply) => {
  const frame = await findFrame(services, sessionOf(request));
  return await sendPage(reply, 200, renderOpening(shellFor(services, request, { ...frame })), "window");
};

/** Requests of the frame's script: same-origin, with the client token in a header. Cookies are ignored. */
async function withFlow(
  services: Services,
  request: FastifyRequest,
  reply: FastifyReply,
  take: (ask: Ask) => Promise<FastifyReply>,
): Promise<FastifyReply> {
  const refuse = async (status: number): Promise<FastifyReply> => {
    const whose = await flowOf(services, request);
    return await sendFrameEnd(services, request, reply, { flow: whose, status, end: "internal" });
  };
  if (!isSameOrigin(services, request)) return await refuse(403);
  throttleForm(services, "address", services.clientOf(request.raw));
  const token = /^Bearer ([\w-]{43})$/.exec(request.headers.authorization ?? "")?.[1] ?? "";
  const flow = await findFlow(services, sessionOf(request), token);
  if (!flow) return await refuse(404);
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
