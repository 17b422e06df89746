import type { FastifyReply, FastifyRequest } from "fastify";
import { beginOAuth, leavesForTarget, signInHost } from "#actions/sessions/begin-oauth.ts";
import {
  chooseInFlow,
  findFlow,
  findSlot,
  mayTry,
  readSignIn,
  readStep,
  type Flow,
} from "#actions/sessions/embedded-flow.ts";
import { checkCsrf } from "#actions/sessions/hosted-session.ts";
import { followTry } from "#actions/sessions/try-login.ts";
import { submitCredentials } from "#actions/sessions/submit-credentials.ts";
import { prepareToLeave } from "#actions/sessions/redirect-to-provider.ts";
import type { Services } from "#actions/services.ts";
import { targetLogoPath } from "./assets.ts";
import { frameShell, sendFrameAnswer, sendFrameJson } from "./frame-answer.ts";
import { clientTokenOf, sendEnd, sendStep, slotToken, timeOf, type Ask, type Extra } from "./frame-views.ts";
import { windowView } from "./pages/frame-pages.ts";
import { formShape, readForm } from "./read-form.ts";
import { basePath } from "./send-page.ts";

const read = async (request: FastifyRequest): Promise<ReadonlyMap<string, string>> =>
  await readForm(request, formShape([]));

/** The current view: at the start, in another language, back at the picker, after a failure. Changes nothing. */
export async function refresh(ask: Ask): Promise<FastifyReply> {
  const asked = await read(ask.request);
  return await sendStep(ask, await readStep(ask.services, ask.flow, asked.get("_pick") === "1"), {
    isOwn: asked.get("_own") === "1",
    // Entered values that are not secret, for the same form in another language, or to be copied after expiry.
    values: asked,
  });
}

export async function choose(ask: Ask): Promise<FastifyReply> {
  const { services, flow } = ask;
  const asked = await read(ask.request);
  const csrf = await checkCsrf(services, clientTokenOf(services, flow), asked.get("_csrf") ?? "");
  if (csrf === "bad") return await sendEnd(ask, "internal");
  if (!(await mayTry(services, flow))) return await sendEnd(ask, "too_many_attempts");
  const key = asked.get("blueprint_key") ?? "";
  const isChosen = csrf === "good" && (await chooseInFlow(services, flow, key));
  const now = await again(services, flow);
  const answer = isChosen ? { blueprint_selected: key } : {};
  return await sendStep({ ...ask, flow: now }, await readStep(services, now), { answer });
}

/** The form of a slot. Values are checked and sealed as on the hosted form; of any number of submits exactly one succeeds. */
export async function submit(ask: Ask): Promise<FastifyReply> {
  const { services, request, reply, flow } = ask;
  const { slot: name } = request.query as { slot?: unknown };
  const slot = await findSlot(services, flow, typeof name === "string" ? name : "");
  if (!slot) return await sendStep(ask, await readStep(services, flow));
  const submitted = await readForm(request, formShape(slot.strategy.fields));
  if (!(await mayTry(services, flow))) return await sendEnd(ask, "too_many_attempts");
  const csrf = await checkCsrf(services, slotToken(services, slot), submitted.get("_csrf") ?? "");
  if (csrf === "bad") return await sendEnd(ask, "internal");
  const extra = { values: submitted, isOwn: true };
  const show = async (more: Extra = {}): Promise<FastifyReply> => {
    const now = await again(services, flow);
    return await sendStep({ ...ask, flow: now }, await readStep(services, now), { ...extra, ...more });
  };
  if (flow.session.status !== "pending" || slot.session.status !== "pending") return await show();
  if (csrf === "stale") return await show({ notice: "stale" });
  const outcome = leavesForTarget(slot.strategy)
    ? await beginOAuth(services, slot, submitted)
    : await submitCredentials(services, slot, submitted, services.clientOf(request.raw));
  switch (outcome.kind) {
    case "leave": {
      const departing = prepareToLeave(services, flow.session.id, outcome);
      const shell = frameShell(services, request, flow);
      const path = `${flow.session.id}/leave?lang=${shell.wording.language}`;
      const { strategy } = slot;
      const view = windowView(shell, {
        ...departing,
        path,
        host: signInHost(strategy),
        brand: flow.brand,
        system: strategy.name,
        logo: targetLogoPath(basePath(services), slot),
      });
      return await sendFrameAnswer(reply, shell, view, { view: "oauth", ...timeOf(flow) });
    }
    case "failed":
      return await show({
        notice: "failed",
        answer: {
          error: {
            code: "oauth_failed",
            message: "The sign-in at the target can't begin.",
            recoverable: true,
          },
        },
      });
    case "invalid":
      return await show({ errors: outcome.errors, answer: { field_error: [...outcome.errors.keys()] } });
    case "checking":
    case "limited":
    case "closed":
    case "completed":
      return await show({ values: outcome.kind === "closed" ? submitted : new Map() });
  }
}

/** Whether the window has returned. docs/decisions/0019: the result comes through the service. */
export async function watchSignIn(ask: Ask): Promise<FastifyReply> {
  const { services, request, reply, flow } = ask;
  const state = (await read(request)).get("state") ?? "";
  const seen = flow.session.status === "pending" ? await readSignIn(services, flow, state) : "done";
  if (seen === "waiting") return await sendFrameJson(reply, { waiting: true });
  const now = await again(services, flow);
  const then = { ...ask, flow: now };
  if (seen === "done") return await sendStep(then, await readStep(services, now), { isOwn: true });
  const isRefused = seen === "refused";
  const message = isRefused
    ? "The end user did not agree at the target."
    : "The sign-in could not be finished.";
  return await sendStep(then, await readStep(services, now), {
    notice: seen,
    answer: {
      error: { code: isRefused ? "oauth_denied" : "oauth_failed", message, recoverable: true },
    },
  });
}

/** What trying a submitted login has come to. Its form is shown again with what was typed and is not secret. */
export async function check(ask: Ask): Promise<FastifyReply> {
  const { services, request, reply, flow } = ask;
  const { slot: name } = request.query as { slot?: unknown };
  const slot = await findSlot(services, flow, typeof name === "string" ? name : "");
  const shape = formShape(slot?.strategy.fields ?? []);
  const values = await readForm(request, { ...shape, encoding: "application/x-www-form-urlencoded" });
  const state = slot === undefined ? "none" : await followTry(services, slot);
  if (state === "checking") return await sendFrameJson(reply, { waiting: true });
  const now = await again(services, flow);
  const refused = {
    code: "login_refused",
    message: "The target did not accept the login.",
    recoverable: true,
  } as const;
  return await sendStep({ ...ask, flow: now }, await readStep(services, now), {
    isOwn: true,
    values,
    ...(state === "refused" && { answer: { error: refused } }),
  });
}

/** The flow after the last change. */
async function again(services: Services, flow: Flow): Promise<Flow> {
  const { id } = flow.session;
  return (await findFlow(services, id, services.signing.clientToken(id))) ?? flow;
}
