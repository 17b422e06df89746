import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import type { Services } from "#actions/services.ts";
import { notFound } from "#domain/problem.ts";
import { getEvents } from "./account-events.ts";
import { getRunResults, getRunStatus, postRunCancel } from "./blueprint-runs.ts";
import { getTriggerSchema, postTrigger } from "./blueprints.ts";
import { getCredentialSession, postCredentialSession } from "./credential-sessions.ts";
import { deleteCredentialById } from "./credentials.ts";
import { getEmbeddedSession, postEmbeddedSession } from "./embedded-credential-sessions.ts";
import { enter } from "./enter.ts";
import { registerIcon } from "./icon.ts";
import { registerReference } from "./openapi-routes.ts";
import { renderProblem } from "./render-problem.ts";
import type { Handler } from "./request.ts";
import { getRunEvents } from "./run-events.ts";
import { deleteScheduleByKey, getSchedule, putScheduleByKey } from "./schedules.ts";
import { getTestClock, putTestClockTo } from "./test-clock.ts";
import { postTriggerBatch } from "./trigger-batch.ts";

/** The public API in the interface's order, followed by this service's extensions. */
export function registerApi(app: FastifyInstance, services: Services): void {
  registerReference(app, services);
  registerIcon(app);
  app.register(
    async (api) => {
      const by = (handler: Handler) => async (request: FastifyRequest, reply: FastifyReply) =>
        await handler(services, request, reply);
      api.addHook("onSend", (_request, reply, _payload, done) => {
        reply.header("Cache-Control", "no-store");
        done();
      });
      api.setErrorHandler((error, _request, reply) => renderProblem(services.log, reply, error));
      // Authentication comes first, for unknown paths too (docs/api.md#authentication).
      api.setNotFoundHandler(async (request, reply) => {
        await enter(services, request, reply, { kind: "calls", scope: null });
        throw notFound("Path");
      });

      api.post("/credential-sessions", by(postCredentialSession));
      api.get("/credential-sessions/:id", by(getCredentialSession));
      api.delete("/credentials/:credentialId", by(deleteCredentialById));
      api.post("/blueprints/:blueprintKey/trigger", by(postTrigger));
      api.get("/blueprint-runs/:runId/status", by(getRunStatus));
      api.get("/blueprint-runs/:runId/results", by(getRunResults));

      // This service's extensions: docs/decisions/0012.
      api.post("/embedded-credential-sessions", by(postEmbeddedSession));
      api.get("/embedded-credential-sessions/:id", by(getEmbeddedSession));
      api.post("/blueprint-runs/:runId/cancel", by(postRunCancel));
      api.get("/blueprint-runs/:runId/events", by(getRunEvents));
      api.post("/blueprints/:blueprintKey/trigger-batch", by(postTriggerBatch));
      api.get("/blueprints/:blueprintKey/schema", by(getTriggerSchema));
      api.get("/events", by(getEvents));
      api.put("/schedules/:scheduleKey", by(putScheduleByKey));
      api.get("/schedules/:scheduleKey", by(getSchedule));
      api.delete("/schedules/:scheduleKey", by(deleteScheduleByKey));
      api.put("/test-clock", by(putTestClockTo));
      api.get("/test-clock", by(getTestClock));
    },
    { prefix: "/api/v1" },
  );
}

/** A URL that the framework can't parse (`%ZZ`, too long): below `/api/v1`, authentication still comes first. */
export async function refuseApiAddress(
  services: Services,
  request: FastifyRequest,
  reply: FastifyReply,
  error: unknown,
): Promise<FastifyReply> {
  if (!/^\/api\/v1(?![^/?])/.test(request.url)) return renderProblem(services.log, reply, error);
  reply.header("Cache-Control", "no-store");
  try {
    await enter(services, request, reply, { kind: "calls", scope: null });
  } catch (refused) {
    return renderProblem(services.log, reply, refused);
  }
  return renderProblem(services.log, reply, error);
}
