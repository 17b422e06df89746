import type { FastifyInstance, FastifyReply } from "fastify";
import { checkCsrf, findHostedSession } from "#actions/sessions/hosted-session.ts";
import { submitCredentials } from "#actions/sessions/submit-credentials.ts";
import { readTryState } from "#actions/sessions/try-login.ts";
import { beginOAuth, leavesForTarget } from "#actions/sessions/begin-oauth.ts";
import { throttleForm } from "#actions/keys/limit-rate.ts";
import type { Services } from "#actions/services.ts";
import { registerAssets } from "./assets.ts";
import { sendDownload } from "./downloads.ts";
import { registerEmbed } from "./embed-routes.ts";
import { openHere } from "./first-browser.ts";
import { postCheck, sendChecking, sendLimited } from "./check-routes.ts";
import { noticeOf, registerOAuthReturn, sendToTarget } from "./oauth-routes.ts";
import { renderExpired, renderForbidden, renderUnknown, renderUsed } from "./pages/message-pages.ts";
import { AGAIN, formShape, readForm } from "./read-form.ts";
import { againOf, sendForm, tokenOf } from "./send-form.ts";
import { sendFault } from "./send-fault.ts";
import { isSameOrigin, PREFIX, sendDone, sendPage, shellFor, type Handler } from "./send-page.ts";
import { chosenLanguage } from "./texts/wordings.ts";
import { listTyped } from "./typed-values.ts";
import { settling } from "./unsettled.ts";

/** The pages that end users see, and the temporary downloads. */
export function registerHosted(app: FastifyInstance, services: Services): void {
  const registerPages = async (pages: FastifyInstance): Promise<void> => {
    pages.setErrorHandler(async (error, request, reply) => await sendFault(services, request, reply, error));
    pages.setNotFoundHandler(async (request, reply) => await sendUnknown(services, request, reply));
    registerAssets(pages, services);
    // The second one is reloaded, or opened in another language, after a login was tried.
    for (const url of ["/:token", "/:token/check"])
      pages.route({
        // HEAD too: chats and mail filters look at a link with it.
        method: ["GET", "HEAD"],
        url,
        handler: async (request, reply) => await getForm(services, request, reply),
      });
    registerOAuthReturn(pages, services);
    pages.post("/:token", async (request, reply) => await postForm(services, request, reply));
    pages.post("/:token/check", async (request, reply) => await postCheck(services, request, reply));
  };
  app.register(registerPages, { prefix: PREFIX });
  registerEmbed(app, services);
  app.route({
    method: ["GET", "HEAD"],
    url: "/downloads/:accountId/:runId/:key",
    handler: async (request, reply) => await sendDownload(services, request, reply),
  });
}

/** Whether answers are shown to end users: then they must be pages, even if the framework itself refuses a URL. */
export const isHostedPath = (url: string): boolean => /^\/(connect|embed)(?![^/?])/.test(url);

/** 404 for an address under `/connect` or `/embed` that no link can have. */
export const sendUnknown: Handler = async (services, request, reply) =>
  await sendPage(reply, 404, renderUnknown(shellFor(services, request, { isRepeatable: true })));

/** Only navigations that a browser marks as such count as visits: link previews and prefetches may open the link any number of times. */
const getForm: Handler = async (services, request, reply) => {
  const token = tokenOf(request);
  const hosted = await findHostedSession(services, token);
  if (!hosted) return await sendUnknown(services, request, reply);
  const { status } = hosted.session;
  const { backTo: back } = hosted;
  const shell = shellFor(services, request, { brand: hosted.brand, isRepeatable: true });
  if (status === "expired") return await sendPage(reply, 410, renderExpired(shell, { back }));
  if (status !== "pending") return await sendPage(reply, 410, renderUsed(shell, { back }));
  const tried = await readTryState(services, hosted);
  if (tried === "checking") return await sendChecking(services, request, reply, { hosted });
  if (tried === "limited") return await sendLimited(services, request, reply, hosted);
  const notice = tried === "refused" ? "rejected" : noticeOf(request, hosted.strategy);
  const isElsewhere = await openHere(services, request, reply, hosted);
  return await sendForm(services, request, reply, { hosted, status: 200, notice, isElsewhere });
};

const postForm: Handler = async (services, request, reply) => {
  const token = tokenOf(request);
  throttleForm(services, "address", services.clientOf(request.raw));
  const hosted = await findHostedSession(services, token);
  if (!hosted) return await sendUnknown(services, request, reply);
  throttleForm(services, "link", hosted.session.id);
  const shell = shellFor(services, request, { brand: hosted.brand });
  const { backTo: back } = hosted;
  const ways = { back, again: againOf(services, request) };
  if (!isSameOrigin(services, request)) return await sendPage(reply, 403, renderForbidden(shell, ways));
  const submitted = await readForm(request, formShape(hosted.strategy.fields));
  const csrf = await checkCsrf(services, token, submitted.get("_csrf") ?? "");
  if (csrf === "bad") return await sendPage(reply, 403, renderForbidden(shell, ways));
  const { status } = hosted.session;
  const sendExpired = async (): Promise<FastifyReply> => {
    const typed = listTyped(hosted.strategy, submitted, shell.wording);
    return await sendPage(reply, 410, renderExpired(shell, { back, typed }));
  };
  if (status === "expired") return await sendExpired();
  // The form in another language, with the entered values. It changes nothing.
  if (submitted.has(AGAIN) && status === "pending")
    return await sendForm(services, request, reply, { hosted, status: 200, values: submitted });
  if (csrf === "stale") {
    return status === "pending"
      ? await sendForm(services, request, reply, { hosted, status: 403, values: submitted, notice: "stale" })
      : await sendPage(reply, 410, renderUsed(shell, { back }));
  }
  if (status === "completed") return await sendDone(services, request, reply, { hosted });
  const outcome = leavesForTarget(hosted.strategy)
    ? await beginOAuth(services, hosted, submitted)
    : await settling(
        async () => await submitCredentials(services, hosted, submitted, services.clientOf(request.raw)),
      );
  switch (outcome.kind) {
    case "leave":
      return await sendToTarget(services, reply, outcome, {
        kind: "page",
        language: chosenLanguage(request.query),
      });
    case "failed":
      return await sendForm(services, request, reply, {
        hosted,
        status: 502,
        values: submitted,
        notice: "failed",
      });
    case "invalid":
      return await sendForm(services, request, reply, {
        hosted,
        status: 422,
        values: submitted,
        errors: outcome.errors,
      });
    case "closed": {
      const now = await findHostedSession(services, token);
      // The loser of a double submit sees what the winner sees (docs/decisions/0017).
      return now?.session.status === "completed"
        ? await sendDone(services, request, reply, { hosted: now })
        : await sendExpired();
    }
    case "checking":
      return await sendChecking(services, request, reply, { hosted, values: submitted });
    case "limited":
      return await sendLimited(services, request, reply, hosted);
    case "completed":
      return await sendDone(services, request, reply, { hosted });
  }
};
