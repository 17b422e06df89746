import type { FastifyInstance } from "fastify";
import { authenticate } from "#actions/authenticate.ts";
import type { Services } from "#actions/services.ts";
import { notFound } from "#domain/problem.ts";
import { getRunResults, getRunStatus } from "./blueprint-runs.ts";
import { postTrigger } from "./blueprints.ts";
import { getCredentialSession, postCredentialSession } from "./credential-sessions.ts";
import { deleteCredentialById } from "./credentials.ts";
import { renderProblem } from "./render-problem.ts";
import { authorizationOf } from "./request.ts";

/** The public API, in the interface's order. */
export function registerApi(app: FastifyInstance, services: Services): void {
  app.register(
    async (api) => {
      api.addHook("onSend", async (_request, reply) => {
        reply.header("Cache-Control", "no-store");
      });
      api.setErrorHandler((error, _request, reply) => renderProblem(services.log, reply, error));
      // Design, page 1: authentication comes first, for unknown paths too.
      api.setNotFoundHandler(async (request) => {
        await authenticate(services, authorizationOf(request));
        throw notFound("Path");
      });

      api.post("/credential-sessions", async (request, reply) => await postCredentialSession(services, request, reply));
      api.get("/credential-sessions/:id", async (request, reply) => await getCredentialSession(services, request, reply));
      api.delete("/credentials/:credentialId", async (request, reply) => await deleteCredentialById(services, request, reply));
      api.post("/blueprints/:blueprintKey/trigger", async (request, reply) => await postTrigger(services, request, reply));
      api.get("/blueprint-runs/:runId/status", async (request, reply) => await getRunStatus(services, request, reply));
      api.get("/blueprint-runs/:runId/results", async (request, reply) => await getRunResults(services, request, reply));
    },
    { prefix: "/api/v1" },
  );
}
