import type { FastifyReply, FastifyRequest } from "fastify";
import type { Flow, FlowStep } from "#actions/sessions/embedded-flow.ts";
import { issueCsrf, type HostedSession } from "#actions/sessions/hosted-session.ts";
import type { Services } from "#actions/services.ts";
import { html } from "#lib/html.ts";
import { targetLogoPath } from "./assets.ts";
import { formPage, type Shown } from "./form-of.ts";
import { errorOf, frameShell, sendFrameAnswer, type FrameAnswer } from "./frame-answer.ts";
import { howAllConnected } from "./how-connected.ts";
import { checkingView } from "./pages/checking-page.ts";
import { formView } from "./pages/form-page.ts";
import {
  endView,
  limitedView,
  pickerView,
  renderStepOf,
  renderWays,
  successView,
  type FrameEnd,
} from "./pages/frame-pages.ts";
import { renderBrand, type Typed } from "./pages/message-pages.ts";
import { basePath } from "./send-page.ts";
import { listTyped } from "./typed-values.ts";

/** One request of the frame. */
export interface Ask {
  readonly services: Services;
  readonly request: FastifyRequest;
  readonly reply: FastifyReply;
  readonly flow: Flow;
}

/** What a step shows in addition to the state of its session. */
export interface Extra extends Shown {
  readonly answer?: Partial<FrameAnswer>;
  /** Whether the session was completed in this frame; one that was completed before it is used up. */
  readonly isOwn?: boolean;
}

export const clientTokenOf = ({ signing }: Services, { session }: Flow): string =>
  signing.clientToken(session.id);
export const slotToken = ({ signing }: Services, { session }: HostedSession): string =>
  signing.hostedToken(session.id);
export const timeOf = ({ session }: Flow): { readonly expires_in_ms: number } => ({
  expires_in_ms: session.remainingMs,
});

export async function sendStep(ask: Ask, step: FlowStep, extra: Extra = {}): Promise<FastifyReply> {
  const { services, request, reply, flow } = ask;
  const shell = frameShell(services, request, flow);
  const { wording } = shell;
  switch (step.kind) {
    case "expired": {
      const typed = step.slot && listTyped(step.slot.strategy, extra.values ?? new Map(), wording);
      return await sendEnd(ask, "session_expired", typed ?? []);
    }
    case "completed": {
      if (extra.isOwn !== true) return await sendEnd(ask, "session_used");
      const success = successView(wording, {
        account: flow.brand.name,
        systems: step.slots.map(({ strategy }) => strategy.name),
        how: howAllConnected(step.slots),
      });
      const view = { ...success, body: html`${renderBrand(shell)} ${success.body}` };
      // Nothing more is needed, in any language.
      const last = { ...shell, isRepeatable: false };
      return await sendFrameAnswer(reply, last, view, { view: "success", completed: completionOf(flow) });
    }
    case "picker": {
      const csrf = await issueCsrf(services, clientTokenOf(services, flow));
      const base = basePath(services);
      const choices = step.choices.map(({ key, name, targets }) => ({
        key,
        name,
        systems: targets.map((target) => ({
          name: target.strategy.name,
          description: target.strategy.description,
          logo: targetLogoPath(base, target),
        })),
      }));
      const view = pickerView(shell, { brand: flow.brand, choices, csrf });
      return await sendFrameAnswer(reply, shell, view, { ...extra.answer, view: "picker", ...timeOf(flow) });
    }
    case "limited": {
      const view = limitedView(shell, step.slot.strategy.name, step.closedMs);
      const error = errorOf("too_many_attempts");
      return await sendFrameAnswer(reply, shell, view, { view: "error", error });
    }
    case "checking": {
      const { slot } = step;
      const { strategy, brand } = slot;
      const targetLogo = targetLogoPath(basePath(services), slot);
      const ways = html`<div data-slot="${slot.session.slot}">${renderWays(wording, false)}</div>`;
      const view = checkingView(shell, { brand, strategyName: strategy.name, targetLogo }, ways);
      const answer = { ...extra.answer, view: "verifying" as const, ...timeOf(flow) };
      return await sendFrameAnswer(reply, shell, view, answer);
    }
    case "form": {
      const { slot, isRefused, canChoose } = step;
      const isTold = extra.errors !== undefined || (extra.notice ?? null) !== null;
      const page = {
        ...(await formPage(services, slot, isRefused && !isTold ? { ...extra, notice: "rejected" } : extra)),
        returnHost: new URL(flow.session.origin).host,
        cancelTo: null,
        action: `${flow.session.id}/submit`,
        framed: {
          step: renderStepOf(wording, step),
          slot: html` data-slot="${slot.session.slot}"`,
          ways: renderWays(wording, canChoose),
        },
      };
      const view = formView(shell, page);
      return await sendFrameAnswer(reply, shell, view, { ...extra.answer, view: "form", ...timeOf(flow) });
    }
  }
}

const completionOf = ({ session }: Flow): NonNullable<FrameAnswer["completed"]> => ({
  session_id: session.id,
  credential_id: session.credentialId,
  credential_ids: session.credentialIds,
  blueprint_key: session.selectedBlueprintKey,
});

/** A final failure, in the customer's colours. */
export async function sendEnd(
  { services, request, reply, flow }: Ask,
  end: Exclude<FrameEnd, "network">,
  typed: readonly Typed[] = [],
): Promise<FastifyReply> {
  const shell = frameShell(services, request, flow);
  const view = endView(shell, end, { typed });
  return await sendFrameAnswer(reply, shell, view, { view: "error", error: errorOf(end) });
}
