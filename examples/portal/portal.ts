import { readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import formbody from "@fastify/formbody";
import fastify, {
  type FastifyError,
  type FastifyInstance,
  type FastifyReply,
  type FastifyRequest,
} from "fastify";
import { PORTAL_ACCOUNTS } from "./accounts.ts";
import { DEFAULT_SEED, generateInvoices } from "./invoices.ts";
import { addInvoiceRoutes } from "./invoice-routes.ts";
import { messagePage } from "./pages.ts";
import { createSessions } from "./sessions.ts";
import { createSignIn } from "./sign-in.ts";
import { addSignInRoutes } from "./sign-in-routes.ts";

export interface PortalOptions {
  /** 0: any free port. */
  readonly port: number;
  readonly seed?: number | undefined;
  /** Fault switch: every answer (but the style sheet) waits this long, in milliseconds. */
  readonly delayMs?: number | undefined;
  /** Fault switch: every n-th request to /api answers 503, counted over all clients; 0 = never. */
  readonly failEvery?: number | undefined;
  /** A session not seen for this long is signed out, in milliseconds. Default 30 minutes. */
  readonly sessionIdleMs?: number | undefined;
}

/** What the portal saw of a request: never its query, headers or body. */
export interface SeenRequest {
  readonly method: string;
  readonly path: string;
  readonly status: number;
}

export interface Portal {
  /** The origin, without a slash at the end. */
  readonly url: string;
  /** The latest requests, oldest first, at most 1,000. Grows while the portal runs. */
  readonly requests: readonly SeenRequest[];
  close(): Promise<void>;
}

const REQUESTS_KEPT_MAX = 1_000;
const BODY_BYTES_MAX = 16_384;
const SESSION_IDLE_MS = 30 * 60_000;

/** Starts a portal with its own sessions, locks and used codes, on loopback. Rejects when the port is taken. */
export async function startPortal(options: PortalOptions): Promise<Portal> {
  const app = fastify({ bodyLimit: BODY_BYTES_MAX, forceCloseConnections: true });
  const requests: SeenRequest[] = [];
  await app.register(formbody);
  keepRequests(app, requests);
  addSharedAnswers(app);
  addFaultSwitches(app, options.delayMs ?? 0, options.failEvery ?? 0);
  const sessions = createSessions(options.sessionIdleMs ?? SESSION_IDLE_MS);
  addSignInRoutes(app, sessions, createSignIn(PORTAL_ACCOUNTS));
  addInvoiceRoutes(app, sessions, generateInvoices(options.seed ?? DEFAULT_SEED), PORTAL_ACCOUNTS);
  const url = await app.listen({ host: "127.0.0.1", port: options.port });
  return { url, requests, close: () => app.close() };
}

/** The path of a request, without its query. */
const pathOf = (request: FastifyRequest): string => request.url.split("?", 1)[0] ?? "/";
const isApi = (request: FastifyRequest): boolean => pathOf(request).startsWith("/api/");

// Before the answer leaves, so that whoever has the answer also finds it in the list.
function keepRequests(app: FastifyInstance, requests: SeenRequest[]): void {
  app.addHook("onSend", async (request, reply) => {
    requests.push({ method: request.method, path: pathOf(request), status: reply.statusCode });
    if (requests.length > REQUESTS_KEPT_MAX) requests.shift();
  });
}

function addFaultSwitches(app: FastifyInstance, delayMs: number, failEvery: number): void {
  let apiRequests = 0;
  app.addHook("onRequest", async (request, reply) => {
    if (delayMs > 0 && pathOf(request) !== "/style.css") await sleep(delayMs);
    if (!isApi(request)) return;
    apiRequests += 1;
    if (failEvery > 0 && apiRequests % failEvery === 0) {
      return reply.code(503).send({ error: "The portal is busy, please try again" });
    }
  });
}

function addSharedAnswers(app: FastifyInstance): void {
  const styleSheet = readFileSync(new URL("./style.css", import.meta.url), "utf8");
  app.addHook("onRequest", async (_request, reply) => {
    reply.headers({
      "cache-control": "no-store",
      "content-security-policy":
        "default-src 'none'; style-src 'self'; img-src data:; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
      "referrer-policy": "same-origin",
      "x-content-type-options": "nosniff",
    });
  });
  app.get("/style.css", (_request, reply) => reply.type("text/css; charset=utf-8").send(styleSheet));
  app.setNotFoundHandler((request, reply) =>
    refuse(request, reply, 404, "Page not found", "There is nothing at this address."),
  );
  app.setErrorHandler((error: FastifyError, request, reply) => {
    const status = error.statusCode ?? 500;
    if (status >= 500)
      process.stderr.write(`${request.method} ${pathOf(request)}: ${error.stack ?? error.message}\n`);
    return status >= 500
      ? refuse(request, reply, status, "Something went wrong", "Please try again in a moment.")
      : refuse(request, reply, status, "That did not work", "The portal could not read this request.");
  });
}

async function refuse(
  request: FastifyRequest,
  reply: FastifyReply,
  status: number,
  title: string,
  message: string,
): Promise<FastifyReply> {
  if (isApi(request)) return reply.code(status).send({ error: message });
  return reply
    .code(status)
    .type("text/html; charset=utf-8")
    .send(String(await messagePage(title, message)));
}
