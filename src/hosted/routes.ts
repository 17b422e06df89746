import { readFileSync } from "node:fs";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import {
  findHostedSession,
  isCsrfGood,
  issueCsrf,
  submitCredentials,
  type HostedSession,
} from "#actions/hosted-session.ts";
import { beginOAuth, leavesForTarget } from "#actions/begin-oauth.ts";
import type { Services } from "#actions/services.ts";
import { Problem } from "#domain/problem.ts";
import { describeError } from "#lib/log.ts";
import { sendDownload } from "./downloads.ts";
import { noticeOf, registerOAuthReturn, sendToTarget, signInHostOf } from "./oauth-routes.ts";
import { renderForm, type SignInNotice } from "./pages/form-page.ts";
import {
  renderExpired,
  renderForbidden,
  renderProblem,
  renderTooLarge,
  renderUnknown,
  renderUsed,
} from "./pages/message-pages.ts";
import { formShape, readForm } from "./read-form.ts";
import { sendDone, sendPage } from "./send-page.ts";

const PREFIX = "/connect";
const STYLE = readFileSync(new URL("./pages/style.css", import.meta.url), "utf8");

/** The pages that end users see, and the temporary downloads. */
export function registerHosted(app: FastifyInstance, services: Services): void {
  const registerPages = async (pages: FastifyInstance): Promise<void> => {
    pages.setErrorHandler(async (error, request, reply) => {
      const status = error instanceof Problem ? error.status : (error as { statusCode?: unknown }).statusCode;
      if (error instanceof Problem) reply.headers(error.headers);
      if (status === 413) return await sendPage(reply, 413, renderTooLarge());
      // Another content type, or none that can be read: our form sends neither.
      if (status === 415) return await sendPage(reply, 415, renderForbidden());
      services.log.error({ requestId: request.id, ...describeError(error) }, "a hosted page failed");
      return await sendPage(reply, 500, renderProblem());
    });
    pages.setNotFoundHandler(async (_request, reply) => await sendUnknown(reply));
    pages.get("/style.css", async (_request, reply) =>
      reply
        .headers({ "Cache-Control": "public, max-age=3600", "X-Content-Type-Options": "nosniff" })
        .type("text/css; charset=utf-8")
        .send(STYLE),
    );
    pages.route({
      // HEAD too: chats and mail filters look at a link with it.
      method: ["GET", "HEAD"],
      url: "/:token",
      handler: async (request, reply) => await getForm(services, request, reply),
    });
    registerOAuthReturn(pages, services, STYLE);
    pages.post("/:token", async (request, reply) => await postForm(services, request, reply));
  };
  app.register(registerPages, { prefix: PREFIX });
  app.route({
    method: ["GET", "HEAD"],
    url: "/downloads/:accountId/:runId/:key",
    handler: async (request, reply) => await sendDownload(services, request, reply),
  });
}

/** Whether end users see what is answered there: pages, then, also where the framework refuses an address by itself. */
export const isHostedPath = (url: string): boolean => /^\/connect(?![^/?])/.test(url);

/** 404 for an address under `/connect` that can't be any link's. */
export const sendUnknown = async (reply: FastifyReply): Promise<FastifyReply> =>
  await sendPage(reply, 404, renderUnknown());

const tokenOf = (request: FastifyRequest): string => (request.params as { token: string }).token;

/** GET changes nothing: link previews and prefetches may open the link as often as they like. */
async function getForm(
  services: Services,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<FastifyReply> {
  const token = tokenOf(request);
  const hosted = await findHostedSession(services, token);
  if (!hosted) return await sendUnknown(reply);
  if (hosted.session.status !== "pending") return await sendClosed(reply, hosted);
  const notice = noticeOf(request, hosted.strategy);
  return await sendForm(services, reply, token, hosted, { status: 200, notice });
}

async function sendClosed(reply: FastifyReply, hosted: HostedSession): Promise<FastifyReply> {
  return await sendPage(reply, 410, hosted.session.status === "expired" ? renderExpired() : renderUsed());
}

async function sendForm(
  services: Services,
  reply: FastifyReply,
  token: string,
  hosted: HostedSession,
  shows: {
    readonly status: number;
    readonly values?: ReadonlyMap<string, string>;
    readonly errors?: ReadonlyMap<string, string>;
    readonly notice?: SignInNotice | null;
  },
): Promise<FastifyReply> {
  const {
    status,
    values = new Map<string, string>(),
    errors = new Map<string, string>(),
    notice = null,
  } = shows;
  const { strategy, accountName, redirectTo } = hosted;
  const page = renderForm({
    accountName,
    strategyName: strategy.name,
    description: strategy.description,
    targetHosts: strategy.hosts.map((host) => new URL(host).host),
    returnHost: redirectTo === null ? null : new URL(redirectTo).host,
    fields: strategy.fields,
    values,
    encoding: formShape(strategy.fields).encoding,
    errors,
    signInHost: signInHostOf(strategy),
    notice,
    csrf: await issueCsrf(services, token),
    // Relative, so that a public URL with a path of its own works too.
    action: token,
  });
  return await sendPage(reply, status, page, "form");
}

async function postForm(
  services: Services,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<FastifyReply> {
  const token = tokenOf(request);
  const hosted = await findHostedSession(services, token);
  if (!hosted) return await sendUnknown(reply);
  if (!isSameOrigin(services, request)) return await sendPage(reply, 403, renderForbidden());
  const submitted = await readForm(request, formShape(hosted.strategy.fields));
  if (!(await isCsrfGood(services, token, submitted.get("_csrf") ?? ""))) {
    return await sendPage(reply, 403, renderForbidden());
  }
  if (hosted.session.status === "completed") return await sendDone(reply, hosted);
  if (hosted.session.status === "expired") return await sendPage(reply, 410, renderExpired());
  const outcome = leavesForTarget(hosted.strategy)
    ? await beginOAuth(services, hosted, submitted)
    : await submitCredentials(services, hosted, submitted);
  if (outcome.kind === "leave") return await sendToTarget(services, reply, outcome);
  if (outcome.kind === "failed") {
    return await sendForm(services, reply, token, hosted, { status: 502, notice: "failed" });
  }
  if (outcome.kind === "invalid") {
    const { errors } = outcome;
    return await sendForm(services, reply, token, hosted, { status: 422, values: submitted, errors });
  }
  if (outcome.kind === "closed") {
    const now = await findHostedSession(services, token);
    // The loser of a double submit sees what the winner sees (design, page 6, 5.4).
    return now?.session.status === "completed"
      ? await sendDone(reply, now)
      : await sendPage(reply, 410, renderExpired());
  }
  return await sendDone(reply, hosted);
}

/**
 * Design, page 1, Hosted form against forgery: refused when `Sec-Fetch-Site` is present and not `same-origin`, or `Origin` is
 * present and neither ours nor `null`. With neither, the CSRF value decides.
 */
function isSameOrigin(services: Services, request: FastifyRequest): boolean {
  const site = request.headers["sec-fetch-site"];
  if (site !== undefined && site !== "same-origin") return false;
  const origin = request.headers.origin;
  return origin === undefined || origin === "null" || origin === new URL(services.publicUrl()).origin;
}
