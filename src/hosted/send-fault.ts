import type { FastifyReply, FastifyRequest } from "fastify";
import { findHostedSession, type HostedSession } from "#actions/sessions/hosted-session.ts";
import type { Services } from "#actions/services.ts";
import { headerRows } from "#domain/header-rows.ts";
import { textIn, type Language } from "#domain/language.ts";
import { Problem } from "#domain/problem.ts";
import { describeError } from "#lib/log.ts";
import {
  renderForbidden,
  renderProblem,
  renderTooLarge,
  renderTooMany,
  type Fate,
} from "./pages/message-pages.ts";
import { FormTooLarge } from "./read-form.ts";
import { againOf, tokenOf } from "./send-form.ts";
import { sendPage, shellFor } from "./send-page.ts";
import { Unsettled } from "./unsettled.ts";

/** The page of a request that failed or was refused before its form was looked at, with the sender where the database tells it. */
export async function sendFault(
  services: Services,
  request: FastifyRequest,
  reply: FastifyReply,
  error: unknown,
): Promise<FastifyReply> {
  const status = error instanceof Problem ? error.status : (error as { statusCode?: unknown }).statusCode;
  if (error instanceof Problem) reply.headers(error.headers);
  const isKnown = status === 413 || status === 415 || status === 429;
  const cause = error instanceof Unsettled ? error.cause : error;
  if (!isKnown)
    services.log.error({ requestId: request.id, ...describeError(cause) }, "a hosted page failed");
  // The database may be what fails.
  const hosted = await findHostedSession(services, tokenOf(request)).catch(() => undefined);
  const shell = shellFor(services, request, hosted && { brand: hosted.brand });
  const ways = { back: hosted?.backTo ?? null, again: againOf(services, request) };
  if (status === 413) {
    const field = error instanceof FormTooLarge ? labelOf(error, hosted, shell.wording.language) : null;
    return await sendPage(reply, 413, renderTooLarge(shell, field, ways));
  }
  if (status === 429) return await sendPage(reply, 429, renderTooMany(shell, waitMsOf(error), ways));
  // Another content type, or an invalid one: our form sends neither.
  if (status === 415) return await sendPage(reply, 415, renderForbidden(shell, ways));
  return await sendPage(reply, 500, renderProblem(shell, fateOf(error, hosted), ways));
}

/** Of a field of the session's strategy: what else was sent is not repeated. */
function labelOf(
  { control }: FormTooLarge,
  hosted: HostedSession | undefined,
  language: Language,
): string | null {
  const field = hosted?.strategy.fields.find(
    ({ key, type }) =>
      key === control ||
      (type === "headers" &&
        headerRows(key).some(({ name, value }) => [name, value].includes(control ?? ""))),
  );
  return field === undefined ? null : textIn(field.label, language);
}

/** After how long the next form is taken, as the answer's `Retry-After` says. */
export const waitMsOf = (error: unknown): number =>
  error instanceof Problem ? Number(error.headers["Retry-After"] ?? 1) * 1_000 : 1_000;

function fateOf(error: unknown, hosted: HostedSession | undefined): Fate {
  if (!(error instanceof Unsettled)) return "nothing";
  if (hosted?.session.status === "completed") return "saved";
  // A login that is being tried may still be kept.
  return hosted === undefined || hosted.strategy.verify ? "unknown" : "nothing";
}
