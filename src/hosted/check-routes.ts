import type { FastifyReply, FastifyRequest } from "fastify";
import {
  checkCsrf,
  findHostedSession,
  issueCsrf,
  type HostedSession,
} from "#actions/sessions/hosted-session.ts";
import { followTry, readClosedMs } from "#actions/sessions/try-login.ts";
import { throttleForm } from "#actions/keys/limit-rate.ts";
import type { Services } from "#actions/services.ts";
import { headerRows } from "#domain/header-rows.ts";
import { textIn } from "#domain/language.ts";
import type { StrategyField } from "#domain/strategy.ts";
import { targetLogoPath } from "./assets.ts";
import { renderChecking } from "./pages/checking-page.ts";
import { isSecret } from "./pages/form-control.ts";
import { renderExpired, renderForbidden, renderLimited, renderUnknown } from "./pages/message-pages.ts";
import { formShape, readForm } from "./read-form.ts";
import { againOf, sendForm, tokenOf } from "./send-form.ts";
import { basePath, isSameOrigin, sendDone, sendPage, shellFor, type Handler } from "./send-page.ts";
import { chosenLanguage } from "./texts/wordings.ts";
import { settling } from "./unsettled.ts";

/** The names of the controls whose values may be shown again. */
function shownAgain(field: StrategyField): readonly string[] {
  if (isSecret(field) || field.type === "file") return [];
  return field.type === "headers"
    ? headerRows(field.key).flatMap(({ name, value }) => [name, value])
    : [field.key];
}

/** docs/decisions/0044: a submitted login is being tried. */
export async function sendChecking(
  services: Services,
  request: FastifyRequest,
  reply: FastifyReply,
  {
    hosted,
    values = new Map(),
  }: { readonly hosted: HostedSession; readonly values?: ReadonlyMap<string, string> },
): Promise<FastifyReply> {
  const token = tokenOf(request);
  const chosen = chosenLanguage(request.query);
  const shell = shellFor(services, request, { brand: hosted.brand });
  const { strategy, brand } = hosted;
  const names = new Set(strategy.fields.flatMap(shownAgain));
  const page = renderChecking(
    shell,
    { brand, strategyName: strategy.name, targetLogo: targetLogoPath(basePath(services), hosted) },
    {
      action: `${basePath(services)}/${token}/check${chosen === null ? "" : `?lang=${chosen}`}`,
      csrf: await issueCsrf(services, token),
      values: new Map([...values].filter(([name]) => names.has(name))),
    },
  );
  return await sendPage(reply, 200, page, "form");
}

/** No further login is taken for now. */
export async function sendLimited(
  services: Services,
  request: FastifyRequest,
  reply: FastifyReply,
  hosted: HostedSession,
): Promise<FastifyReply> {
  const { brand, strategy, backTo: back } = hosted;
  const shell = shellFor(services, request, { brand });
  const system = textIn(strategy.name, shell.wording.language);
  const closedMs = await readClosedMs(services, hosted);
  return await sendPage(reply, 429, renderLimited(shell, system, closedMs, { back }));
}

/** What trying the login has come to; after some time, that it is still being tried. */
export const postCheck: Handler = async (services, request, reply) => {
  const token = tokenOf(request);
  throttleForm(services, "address", services.clientOf(request.raw));
  const hosted = await findHostedSession(services, token);
  const shell = shellFor(services, request, hosted && { brand: hosted.brand });
  if (!hosted) return await sendPage(reply, 404, renderUnknown(shell));
  throttleForm(services, "link", hosted.session.id);
  const { backTo: back } = hosted;
  const forbidden = async (): Promise<FastifyReply> =>
    await sendPage(reply, 403, renderForbidden(shell, { back, again: againOf(services, request) }));
  if (!isSameOrigin(services, request)) return await forbidden();
  const shape = formShape(hosted.strategy.fields);
  // Without files, whatever the form had.
  const values = await readForm(request, { ...shape, encoding: "application/x-www-form-urlencoded" });
  if ((await checkCsrf(services, token, values.get("_csrf") ?? "")) === "bad") return await forbidden();
  const state = await settling(async () => await followTry(services, hosted));
  switch (state) {
    case "checking":
      return await sendChecking(services, request, reply, { hosted, values });
    case "limited":
      return await sendLimited(services, request, reply, hosted);
    case "refused":
      return await sendForm(services, request, reply, { hosted, status: 422, values, notice: "rejected" });
    case "none":
      return await sendForm(services, request, reply, { hosted, status: 200, values });
    case "closed": {
      const now = await findHostedSession(services, token);
      return now?.session.status === "completed"
        ? await sendDone(services, request, reply, { hosted: now })
        : await sendPage(reply, 410, renderExpired(shell, { back }));
    }
  }
};
