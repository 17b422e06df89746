import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import type { Services } from "#actions/services.ts";
import { notFound } from "#domain/problem.ts";
import { getRunResults, getRunStatus, postRunCancel } from "./blueprint-runs.ts";
import { getTriggerSchema, postTrigger } from "./blueprints.ts";
import { getCredentialSession, postCredentialSession } from "./credential-sessions.ts";
import { deleteCredentialById } from "./credentials.ts";
import { getEmbeddedSession, postEmbeddedSession } from "./embedded-credential-sessions.ts";
import { enter } from "./enter.ts";
import { registerIcon } from "./icon.ts";
import { registerReference } from "./openapi-routes.ts";
import { renderProblem } from "./render-problem.ts";
import { getRunEvents } from "./run-events.ts";

/** The public API, in the interface's order; then what we add to it. */
export function registerApi(app: FastifyInstance, services: Services): void {
  registerReference(app, services);
  registerIcon(app);
  app.register(
    async (api) => {
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

      api.post(
        "/credential-sessions",
        async (request, reply) => await postCredentialSession(services, request, reply),
      );
      api.get(
        "/credential-sessions/:id",
        async (request, reply) => await getCredentialSession(services, request, reply),
      );
      api.delete(
        "/credentials/:credentialId",
        async (request, reply) => await deleteCredentialById(services, request, reply),
      );
      api.post(
        "/blueprints/:blueprintKey/trigger",
        async (request, reply) => await postTrigger(services, request, reply),
      );
      api.get(
        "/blueprint-runs/:runId/status",
        async (request, reply) => await getRunStatus(services, request, reply),
      );
      api.get(
        "/blueprint-runs/:runId/results",
        async (request, reply) => await getRunResults(services, request, reply),
      );

      // Extensions of ours: docs/decisions/0012.
      api.post(
        "/embedded-credential-sessions",
        async (request, reply) => await postEmbeddedSession(services, request, reply),
      );
      api.get(
        "/embedded-credential-sessions/:id",
        async (request, reply) => await getEmbeddedSession(services, request, reply),
      );
      api.post(
        "/blueprint-runs/:runId/cancel",
        async (request, reply) => await postRunCancel(services, request, reply),
      );
      api.get(
        "/blueprint-runs/:runId/events",
        async (request, reply) => await getRunEvents(services, request, reply),
      );
      api.get(
        "/blueprints/:blueprintKey/schema",
        async (request, reply) => await getTriggerSchema(services, request, reply),
      );
    },
    { prefix: "/api/v1" },
  );
}

/** An address that the framework can't read (`%ZZ`, over-long): under `/api/v1`, too, authentication comes first. */
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
