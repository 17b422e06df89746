import type { FastifyReply, FastifyRequest } from "fastify";
import type { Flow } from "#actions/sessions/embedded-flow.ts";
import type { Services } from "#actions/services.ts";
import { isLanguage, type Language } from "#domain/language.ts";
import type { Shell, View } from "./pages/document.ts";
import { hostedHeaders } from "./pages/headers.ts";
import { endView, renderFrameView, type FrameEnd } from "./pages/frame-pages.ts";
import { shellFor } from "./send-page.ts";
import { directionOf } from "./texts/texts.ts";

/** The messages that the frame sends to its page: codes and ids, never entered values. docs/embedded.md#events. */
export interface FrameError {
  readonly code:
    | "session_expired"
    | "session_used"
    | "oauth_denied"
    | "oauth_failed"
    | "login_refused"
    | "too_many_attempts"
    | "internal";
  readonly message: string;
  readonly recoverable: boolean;
}

export interface FrameAnswer {
  readonly view: "picker" | "form" | "oauth" | "verifying" | "success" | "error";
  readonly blueprint_selected?: string;
  /** Keys of the invalid fields. */
  readonly field_error?: readonly string[];
  readonly error?: FrameError;
  readonly completed?: {
    readonly session_id: string;
    readonly credential_id: string | null;
    readonly credential_ids: Readonly<Record<string, string>>;
    readonly blueprint_key: string | null;
  };
  /** The remaining time of the session. */
  readonly expires_in_ms?: number;
}

const MESSAGES = {
  session_expired: "The session has expired. Create a new one.",
  session_used: "The session is already completed. Read it on your server.",
  too_many_attempts: "Too many forms were sent in this session. Create a new one.",
  internal: "The session can't be opened: its id, its client token or its origin is wrong.",
  failed: "The service could not answer. Try again.",
  too_often: "Too many requests. Try again later.",
} as const;

export function errorOf(end: Exclude<FrameEnd, "network">): FrameError {
  const isPassing = end === "failed" || end === "too_often";
  return { code: isPassing ? "internal" : end, message: MESSAGES[end], recoverable: isPassing };
}

/** The language: as chosen in the frame or by its page, or else the session's, or else the browser's. */
export function frameShell(services: Services, request: FastifyRequest, flow: Flow | null): Shell {
  if (flow === null) return shellFor(services, request);
  const language = languageOf(flow.session.locale);
  return shellFor(services, request, { brand: flow.brand, language, isRepeatable: true });
}

/** The language of a tag, if the pages support it. */
export function languageOf(locale: string | null): Language | null {
  const base = locale?.split("-", 1)[0]?.toLowerCase() ?? "";
  return isLanguage(base) ? base : null;
}

/** A view and its messages, together with the view that is shown when a request gets no answer. */
export async function sendFrameAnswer(
  reply: FastifyReply,
  shell: Shell,
  view: View,
  answer: FrameAnswer,
  status = 200,
): Promise<FastifyReply> {
  const { language } = shell.wording;
  const body = {
    ...answer,
    html: renderFrameView(shell, view).toString(),
    title: view.title,
    language,
    direction: directionOf(language),
    offline: renderFrameView(shell, endView(shell, "network")).toString(),
  };
  return await sendFrameJson(reply, body, status);
}

export const sendFrameJson = async (reply: FastifyReply, body: object, status = 200): Promise<FastifyReply> =>
  await reply
    .code(status)
    .headers(hostedHeaders("page"))
    .type("application/json; charset=utf-8")
    .send(JSON.stringify(body));

/** The flow has ended, or is not available now. Of the session it shows the sender alone: `flow` may not be this caller's. */
export async function sendFrameEnd(
  services: Services,
  request: FastifyRequest,
  reply: FastifyReply,
  {
    flow,
    status,
    end,
    waitMs = 0,
  }: {
    readonly flow: Flow | null;
    readonly status: number;
    readonly end: Exclude<FrameEnd, "network">;
    readonly waitMs?: number;
  },
): Promise<FastifyReply> {
  const shell = { ...frameShell(services, request, flow), isRepeatable: false };
  const answer = { view: "error", error: errorOf(end) } as const;
  return await sendFrameAnswer(reply, shell, endView(shell, end, { waitMs }), answer, status);
}
