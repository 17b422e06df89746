import type { FastifyReply, FastifyRequest } from "fastify";
import type { HostedSession } from "#actions/sessions/hosted-session.ts";
import type { Services } from "#actions/services.ts";
import { must } from "#lib/assert.ts";
import { wasOpenedElsewhere } from "./first-browser.ts";
import { formPage, type Shown } from "./form-of.ts";
import { renderForm } from "./pages/form-page.ts";
import { basePath, sendPage, shellFor } from "./send-page.ts";
import { chosenLanguage } from "./texts/wordings.ts";

export const tokenOf = (request: FastifyRequest): string =>
  (request.params as { token?: string }).token ?? "";

/** The address of the link itself, in the language that was chosen; null: of a page that has no link. */
export function againOf(services: Services, request: FastifyRequest): string | null {
  const token = tokenOf(request);
  const chosen = chosenLanguage(request.query);
  if (token === "") return null;
  return `${basePath(services)}/${encodeURIComponent(token)}${chosen === null ? "" : `?lang=${chosen}`}`;
}

interface Answered extends Shown {
  readonly hosted: HostedSession;
  readonly status: number;
}

export async function sendForm(
  services: Services,
  request: FastifyRequest,
  reply: FastifyReply,
  { hosted, status, ...shown }: Answered,
): Promise<FastifyReply> {
  const page = renderForm(shellFor(services, request, { brand: hosted.brand, isRepeatable: true }), {
    ...(await formPage(services, hosted, {
      isElsewhere: wasOpenedElsewhere(services, request, hosted),
      ...shown,
    })),
    // Also on the answer to the form of a page that waits, which has an address of its own.
    action: must(againOf(services, request), "the link's address"),
  });
  return await sendPage(reply, status, page, "form");
}
