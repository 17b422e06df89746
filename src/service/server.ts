import { setTimeout as sleep } from "node:timers/promises";
import Fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from "fastify";
import { bodyLane, laneBounds } from "#api/body-lane.ts";
import {
  checkRequestShape,
  endsWithAnswer,
  guardConnections,
  refuseConnection,
} from "#api/guard-connections.ts";
import { guardPace } from "#api/guard-pace.ts";
import { limitConnections } from "#api/limit-connections.ts";
import { renderProblem } from "#api/render-problem.ts";
import { readHealth } from "#actions/upkeep/read-health.ts";
import type { Services } from "#actions/services.ts";
import type { Ceilings } from "#domain/ceilings.ts";
import { isNeighbour, type Network } from "#domain/client-address.ts";
import { limits } from "#domain/limits.ts";
import { Problem } from "#domain/problem.ts";
import { listFullDisks } from "#lib/full-disks.ts";
import { metrics } from "#lib/metrics.ts";
import { newId } from "#lib/new-id.ts";

export interface Server {
  /** The address that it listens on, e.g. `http://127.0.0.1:8080`. */
  readonly url: string;
  /** Refuses new work, waits at most `drainMs` for requests in progress, then closes the remaining connections. */
  close(drainMs: number): Promise<void>;
}

const MS = { request: 300_000, headers: 10_000, check: 2_000 } as const;
/** Limits for receiving a body. A long upload may take its time, but a stalled one is ended long before `MS.request`. */
const PACE = { graceMs: 30_000, bytesPerSecondMin: 10_000, lookEveryMs: 2_000 } as const;
const READY_PATH = "/readyz";
const HEADER_BYTES_MAX = 16_384;
const SWEEP_MS = 50;
/**
 * Before the port closes, load balancers that polled /readyz within `asked` must have seen it fail, and must have sent no
 * requests for `quiet`.
 */
const READINESS_MS = { asked: 30_000, quiet: 500 } as const;
const PARAMETER_CHARACTERS_MAX = 500;

/** Loaded where it is needed: half of the modules that a process with both roles loads are behind the routes. */
const loadRoutes = async () => await import("./routes.ts");

/** Opens the HTTP server of a process. With the worker role alone, it answers only health checks. */
export async function openServer(
  services: Services,
  options: {
    readonly host: string;
    readonly port: number;
    readonly api: boolean;
    readonly trustedProxies: readonly Network[];
    /** Which requests have a line in the log. */
    readonly accessLog: "on" | "errors" | "off";
    readonly ceilings: Ceilings;
    /** For how long the database that this process supervises has been down, in milliseconds. */
    readonly databaseGoneForMs: () => number;
  },
): Promise<Server> {
  bodyLane.setBounds(laneBounds(options.ceilings));
  const routes = options.api ? await loadRoutes() : null;
  const state = newReadiness(options.databaseGoneForMs);
  const app = Fastify({
    logger: false,
    genReqId: () => newId("req_"),
    // The framework's defaults are 0 or long (docs/decisions/0028).
    requestTimeout: MS.request,
    keepAliveTimeout: limits.keepAliveMs,
    http: {
      headersTimeout: MS.headers,
      connectionsCheckingInterval: MS.check,
      maxHeaderSize: HEADER_BYTES_MAX,
      // Our answer uses the API's error envelope.
      requireHostHeader: false,
    },
    exposeHeadRoutes: false,
    // While draining, the handlers answer as before, since their effects are durable. The framework's own 503 has another error format.
    return503OnClosing: false,
    routerOptions: { maxParamLength: PARAMETER_CHARACTERS_MAX },
    frameworkErrors: (error, request, reply) => {
      reply.header("X-Request-Id", request.id);
      if (endsWithAnswer(request.raw)) reply.header("Connection", "close");
      void loadRoutes().then(({ refuseAddress }) => refuseAddress(services, request, reply, error));
    },
    clientErrorHandler: refuseConnection,
  });
  limitConnections(app.server, {
    ...options.ceilings.connections,
    keepAliveMs: limits.keepAliveMs,
    keepAliveOfManyMs: limits.keepAliveOfManyMs,
    isNeighbour: (peer) => isNeighbour(peer, options.trustedProxies),
  });
  guardConnections(app.server);
  guardPace(app.server, PACE);
  // Handlers read bodies after authentication. The framework, which would reject some Content-Types itself, gets to see no body.
  for (const method of app.supportedMethods)
    app.addHttpMethod(method, { hasBody: false, overrideExisting: true });
  app.addHook("onRequest", async (request, reply) => {
    reply.header("X-Request-Id", request.id);
    if (request.url !== READY_PATH) state.requestAtMs = performance.now();
    checkRequestShape(request.raw);
  });
  app.addHook("onSend", (request, reply, _payload, done) => {
    if (endsWithAnswer(request.raw) || state.draining) reply.header("Connection", "close");
    // Browsers must not interpret an answer as any type but the declared one.
    if (!reply.hasHeader("X-Content-Type-Options")) reply.header("X-Content-Type-Options", "nosniff");
    done();
  });
  app.addHook("onResponse", (request, reply, done) => {
    noteRequest(services, request, reply, options.accessLog);
    done();
  });
  app.setErrorHandler((error, _request, reply) => renderProblem(services.log, reply, error));
  app.setNotFoundHandler(async () => {
    throw new Problem("not_found", "Not found.");
  });
  registerHealth(app, services, state);
  routes?.registerRoutes(app, services);
  const url = await app.listen({ host: options.host, port: options.port });
  return { url, close: async (drainMs) => await close(app, services, state, drainMs) };
}

/** The route is the program's own; a path, a query or a header of the caller is neither counted nor logged. */
function noteRequest(
  { log }: Services,
  request: FastifyRequest,
  reply: FastifyReply,
  accessLog: "on" | "errors" | "off",
): void {
  const { elapsedTime: ms, statusCode } = reply;
  const labels = {
    method: request.method,
    route: request.routeOptions.url ?? "none",
    status: String(statusCode),
  };
  metrics.httpRequests.observe(labels, ms / 1_000);
  if (accessLog === "off" || (accessLog === "errors" && statusCode < 500)) return;
  const bytes = Number(reply.getHeader("content-length") ?? 0);
  log.info({ requestId: request.id, ...labels, status: statusCode, ms: Math.round(ms), bytes }, "request");
}

async function close(
  app: FastifyInstance,
  services: Services,
  state: Readiness,
  drainMs: number,
): Promise<void> {
  state.draining = true;
  const cut = sleep(drainMs, undefined, { ref: false }).then(() => app.server.closeAllConnections());
  // Streams would last as long as their runs. Their clients reconnect to another process.
  services.runWatch.drain();
  services.eventWatch.drain();
  services.operatorWatch.drain();
  await announceShutdown(state, drainMs);
  // Repeatedly, because a caller may keep its connection open after the answer that it waited for.
  const sweep = setInterval(() => app.server.closeIdleConnections(), SWEEP_MS);
  app.server.closeIdleConnections();
  await Promise.race([app.close(), cut.then(() => app.close())]);
  clearInterval(sweep);
}

/** Whether the service accepts requests, and when load balancers last asked. */
interface Readiness {
  draining: boolean;
  askedAtMs: number;
  requestAtMs: number;
  /** Whether a load balancer has seen that it is draining. */
  readonly told: PromiseWithResolvers<void>;
  readonly databaseGoneForMs: () => number;
}

const newReadiness = (databaseGoneForMs: () => number): Readiness => ({
  draining: false,
  askedAtMs: -Infinity,
  requestAtMs: -Infinity,
  told: Promise.withResolvers(),
  databaseGoneForMs,
});

/**
 * docs/decisions/0033. A load balancer that polls /readyz sees that the service is draining. The port stays open until it sends
 * its requests elsewhere, for at most half of the drain time.
 */
async function announceShutdown(state: Readiness, drainMs: number): Promise<void> {
  if (performance.now() - state.askedAtMs > READINESS_MS.asked) return;
  const deadline = performance.now() + drainMs / 2;
  await Promise.race([state.told.promise, sleep(drainMs / 2, undefined, { ref: false })]);
  state.requestAtMs = performance.now();
  while (performance.now() < Math.min(deadline, state.requestAtMs + READINESS_MS.quiet))
    await sleep(SWEEP_MS);
}

/** docs/api.md#outside-apiv1: no account data. */
function registerHealth(app: FastifyInstance, services: Services, state: Readiness): void {
  app.get("/healthz", async (_request, reply) => {
    reply.header("Cache-Control", "no-store");
    if (state.databaseGoneForMs() > limits.databaseGoneMs)
      return await reply.code(503).send({ status: "database gone" });
    return await reply.send({ status: "ok" });
  });
  app.get(READY_PATH, async (_request, reply) => {
    reply.header("Cache-Control", "no-store");
    state.askedAtMs = performance.now();
    if (state.draining) {
      state.told.resolve();
      return await reply.code(503).send({ status: "draining" });
    }
    try {
      await readHealth(services);
    } catch {
      return await reply.code(503).send({ status: "database unavailable" });
    }
    // It can still answer what writes nothing there, so it stays in rotation; requests that need the room are answered 503.
    const full = listFullDisks();
    return await reply.send({ status: "ready", ...(full.length > 0 && { disk_full: full }) });
  });
}
