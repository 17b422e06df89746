import type { FastifyReply, FastifyRequest } from "fastify";
import { howConnected } from "./how-connected.ts";
import type { HostedSession } from "#actions/sessions/hosted-session.ts";
import type { Services } from "#actions/services.ts";
import { textIn, type Language } from "#domain/language.ts";
import type { Html } from "#lib/html.ts";
import type { Brand } from "#domain/branding.ts";
import type { Shell } from "./pages/document.ts";
import { hostedHeaders, type HostedPageKind } from "./pages/headers.ts";
import { renderSuccess } from "./pages/message-pages.ts";
import { chosenLanguage, negotiateLanguage, wordingOf } from "./texts/wordings.ts";

/** Answers one route. */
export type Handler = (
  services: Services,
  request: FastifyRequest,
  reply: FastifyReply,
) => Promise<FastifyReply>;

export const PREFIX = "/connect";

export async function sendPage(
  reply: FastifyReply,
  status: number,
  page: Html,
  kind: HostedPageKind = "page",
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

/** The path of the pages, as browsers know it. */
export const basePath = (services: Services): string =>
  new URL(services.publicUrl()).pathname.replace(/\/$/, "") + PREFIX;

/** The shell of a page, in the chosen language or else in the browser's. */
export function shellFor(
  services: Services,
  request: FastifyRequest,
  more: {
    readonly brand?: Brand;
    /** Whether a GET of the address returns the page again. */
    readonly isRepeatable?: boolean;
    /** Chosen on an earlier page. */
    readonly language?: Language | null;
  } = {},
): Shell {
  const language = chosenLanguage(request.query) ?? more.language ?? null;
  return {
    wording: wordingOf(language ?? negotiateLanguage(request.headers["accept-language"])),
    base: basePath(services),
    brand: more.brand ?? null,
    isRepeatable: more.isRepeatable ?? false,
  };
}

/** Spec, Credential session: the redirect with `session_id`, or a success page where no return URL was given. */
export async function sendDone(
  services: Services,
  request: FastifyRequest,
  reply: FastifyReply,
  { hosted, language = null }: { readonly hosted: HostedSession; readonly language?: Language | null },
): Promise<FastifyReply> {
  if (hosted.redirectTo !== null) {
    return reply.headers(hostedHeaders("page")).header("Location", hosted.redirectTo).code(303).send();
  }
  const shell = shellFor(services, request, { brand: hosted.brand, language });
  const system = textIn(hosted.strategy.name, shell.wording.language);
  return await sendPage(
    reply,
    200,
    renderSuccess(shell, {
      account: hosted.brand.name,
      system,
      how: howConnected(hosted),
      back: hosted.backTo,
    }),
  );
}

/**
 * docs/decisions/0017: refused when `Sec-Fetch-Site` is present and not `same-origin`, or `Origin` is
 * present and neither ours nor `null`. With neither, the CSRF value decides.
 */
export function isSameOrigin(services: Services, request: FastifyRequest): boolean {
  const site = request.headers["sec-fetch-site"];
  if (site !== undefined && site !== "same-origin") return false;
  const origin = request.headers.origin;
  return origin === undefined || origin === "null" || origin === new URL(services.publicUrl()).origin;
}
