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
import { addBankRoutes, generateTransactions } from "./bank.ts";
import { addControl } from "./control.ts";
import { addDocumentRoutes } from "./documents.ts";
import { addFaults } from "./fault-hooks.ts";
import { createFaults } from "./faults.ts";
import { DEFAULT_SEED, generateInvoices } from "./invoices.ts";
import { addInvoiceRoutes } from "./invoice-routes.ts";
import { type Ledger, startLedger } from "./ledger.ts";
import { addMeterRoutes, generateReadings } from "./meters.ts";
import { addOAuthRoutes } from "./oauth-routes.ts";
import { createTokens } from "./oauth-tokens.ts";
import { addOrderRoutes } from "./orders.ts";
import { messagePage } from "./pages.ts";
import { addShipmentRoutes } from "./shipment-routes.ts";
import { createShipmentTokens } from "./shipment-tokens.ts";
import { generateShipments } from "./shipments.ts";
import { createSessions } from "./sessions.ts";
import { createSignIn } from "./sign-in.ts";
import { addSignInRoutes } from "./sign-in-routes.ts";
import { signedInBy } from "./signed-in.ts";
import { generateTrade } from "./trade.ts";
import { addTradeRoutes } from "./trade-routes.ts";

export interface PortalOptions {
  /** 0: any free port. */
  readonly port: number;
  readonly seed?: number | undefined;
  /** Of the Southgate Ledger, which comes along; 0 (the default): any free one. */
  readonly ledgerPort?: number | undefined;
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
  /** The origin of the Southgate Ledger. */
  readonly ledgerUrl: string;
  /** The latest requests, oldest first, at most 1,000. Grows while the portal runs. */
  readonly requests: readonly SeenRequest[];
  close(): Promise<void>;
}

const REQUESTS_KEPT_MAX = 1_000;
const BODY_BYTES_MAX = 16_384;
const SESSION_IDLE_MS = 30 * 60_000;

/** Starts a portal with its own sessions, locks and used codes, on loopback, and the ledger beside it. Rejects when a port is taken. */
export async function startPortal(options: PortalOptions): Promise<Portal> {
  const app = fastify({ bodyLimit: BODY_BYTES_MAX, forceCloseConnections: true });
  const requests: SeenRequest[] = [];
  await app.register(formbody);
  const seed = options.seed ?? DEFAULT_SEED;
  const trade = generateTrade(seed);
  const faults = createFaults();
  const answered = keepRequests(app, requests);
  addSharedAnswers(app);
  addFaultSwitches(app, options.delayMs ?? 0, options.failEvery ?? 0);
  addFaults(app, faults, pathOf);
  const stateOf = addSystems(app, seed, options.sessionIdleMs ?? SESSION_IDLE_MS);
  addTradeRoutes(app, stateOf.signedIn, trade);
  let ledger: Ledger | null = null;
  let url = "";
  addControl(app, {
    faults,
    setTokenUses: (uses) => stateOf.setTokenUses(uses),
    state: () => ({
      addresses: { portal: url, ledger: ledger?.url },
      answered,
      ledger_answered: ledger?.answered,
      ...stateOf.holds(),
    }),
  });
  url = await app.listen({ host: "127.0.0.1", port: options.port });
  try {
    ledger = await startLedger(options.ledgerPort ?? 0, trade);
  } catch (error) {
    await app.close();
    throw error;
  }
  const beside = ledger;
  const close = async (): Promise<void> => void (await Promise.all([app.close(), beside.close()]));
  return { url, ledgerUrl: beside.url, requests, close };
}

/** Everything that the portal is, each part in a file of its own; gives what `/__control` shows of them. */
function addSystems(app: FastifyInstance, seed: number, sessionIdleMs: number) {
  const sessions = createSessions(sessionIdleMs);
  const signIn = createSignIn(PORTAL_ACCOUNTS);
  const signedIn = signedInBy(sessions, PORTAL_ACCOUNTS);
  const tokens = createTokens();
  addSignInRoutes(app, sessions, signIn);
  addInvoiceRoutes(app, signedIn, generateInvoices(seed));
  const orders = addOrderRoutes(app, signedIn);
  const documents = addDocumentRoutes(app, signedIn);
  addOAuthRoutes(app, sessions, signedIn, tokens);
  addBankRoutes(app, tokens, generateTransactions(seed));
  addMeterRoutes(app, signedIn, generateReadings(seed));
  const pickups = addShipmentRoutes(app, signIn, createShipmentTokens(), generateShipments(seed));
  return {
    signedIn,
    setTokenUses: (uses: number | null) => tokens.setUses(uses),
    holds: () => ({
      orders: orders.all,
      duplicates_refused: orders.duplicates,
      documents,
      pickups,
      tokens: tokens.counts,
      sign_ins: signIn.state(),
    }),
  };
}

/** The path of a request, without its query. */
const pathOf = (request: FastifyRequest): string => request.url.split("?", 1)[0] ?? "/";
const isApi = (request: FastifyRequest): boolean =>
  /^\/(api|shipments\/api|oauth\/token|__control)\b/.test(pathOf(request));

/** By route and status, how many requests were answered; never their query, headers or body. */
type Answered = Record<string, Record<string, number>>;

// Before the answer leaves, so that a caller that has the answer also finds it in the list.
function keepRequests(app: FastifyInstance, requests: SeenRequest[]): Answered {
  const answered: Answered = {};
  app.addHook("onSend", async (request, reply) => {
    const status = reply.statusCode;
    requests.push({ method: request.method, path: pathOf(request), status });
    if (requests.length > REQUESTS_KEPT_MAX) requests.shift();
    const route = `${request.method} ${request.routeOptions.url ?? "(no such page)"}`;
    const counts = (answered[route] ??= {});
    counts[status] = (counts[status] ?? 0) + 1;
  });
  return answered;
}

function addFaultSwitches(app: FastifyInstance, delayMs: number, failEvery: number): void {
  let apiRequests = 0;
  app.addHook("onRequest", async (request, reply) => {
    if (delayMs > 0 && !/^\/(style\.css$|__control)/.test(pathOf(request))) await sleep(delayMs);
    if (!pathOf(request).startsWith("/api/")) return;
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
