import { readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import formbody from "@fastify/formbody";
import fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from "fastify";
import { Latchkey, LatchkeyError } from "../../sdk/typescript/src/latchkey.ts";
import { type Book, type Connection, type Fetch, INTEGRATIONS, newId, openBook } from "./ledger-book.ts";
import { homePage, messagePage, runPage } from "./pages.ts";

export interface AppOptions {
  /** 0: any free port. */
  readonly port: number;
  readonly latchkeyUrl: string;
  readonly apiKey: string;
}

export interface App {
  readonly url: string;
  close(): Promise<void>;
}

const SESSION_POLLS_MAX = 50;
const SESSION_POLL_MS = 100;
const DIRECT = { deliveryMethod: "direct" } as const;

/** Ledgerly: a customer's application. It shows what a customer builds on Latchkey, and knows nothing but its interface. */
export async function startApp({ port, latchkeyUrl, apiKey }: AppOptions): Promise<App> {
  const app = fastify({ bodyLimit: 16_384, forceCloseConnections: true });
  await app.register(formbody);
  const latchkey = new Latchkey({ baseUrl: latchkeyUrl, apiKey });
  const book = openBook();
  let url = "";
  guard(app, latchkeyUrl);
  addHome(app, latchkey, book, latchkeyUrl);
  addConnecting(app, latchkey, book, () => url);
  addEmbedding(app, latchkey, book, () => url);
  addFetching(app, latchkey, book);
  url = await app.listen({ host: "127.0.0.1", port });
  return { url, close: async () => await app.close() };
}

function guard(app: FastifyInstance, latchkeyUrl: string): void {
  const style = readFileSync(new URL("./style.css", import.meta.url), "utf8");
  const script = readFileSync(new URL("./connect.js", import.meta.url), "utf8");
  const { origin } = new URL(latchkeyUrl);
  app.addHook("onRequest", async (request, reply) => {
    reply.headers({
      "cache-control": "no-store",
      // The widget and its frame are Latchkey's; nothing else is from elsewhere.
      "content-security-policy": `default-src 'none'; style-src 'self'; img-src data:; base-uri 'none'; script-src 'self' ${origin}; frame-src ${origin}; connect-src 'self'`,
      "x-content-type-options": "nosniff",
    });
    // No other site's page may press our buttons.
    const site = request.headers["sec-fetch-site"];
    if (request.method === "POST" && site !== undefined && site !== "same-origin")
      return await page(reply.code(403), messagePage("Not from here", "Please use Ledgerly's own pages."));
  });
  app.get("/style.css", (_request, reply) => reply.type("text/css; charset=utf-8").send(style));
  app.get("/connect.js", (_request, reply) => reply.type("text/javascript; charset=utf-8").send(script));
  app.setErrorHandler(async (error, _request, reply) => {
    if (error instanceof LatchkeyError)
      return await page(reply.code(502), messagePage("That did not work", error.message));
    process.stderr.write(`${error instanceof Error ? error.stack : String(error)}\n`);
    return await page(reply.code(500), messagePage("Something went wrong", "Please try again in a moment."));
  });
}

function addHome(app: FastifyInstance, latchkey: Latchkey, book: Book, latchkeyUrl: string): void {
  app.get("/", async (_request, reply) => {
    const fetches = [...book.fetches.values()].toReversed();
    const runs = await Promise.all(
      fetches.map(async (fetch) => ({ fetch, run: await latchkey.runs.readStatus(fetch.runId) })),
    );
    return await page(reply, homePage(book, runs, latchkeyUrl));
  });
}

function addConnecting(app: FastifyInstance, latchkey: Latchkey, book: Book, url: () => string): void {
  // To the hosted form: Ledgerly never sees what is typed there.
  app.post("/connect", async (request, reply) => {
    const integration = INTEGRATIONS.find(({ strategyId }) => strategyId === field(request, "strategy"));
    if (!integration) return await missing(reply);
    const id = newId();
    const session = await latchkey.credentialSessions.create(
      {
        strategy_id: integration.strategyId,
        name: `Ledgerly ${id.slice(0, 8)}`,
        return_url: `${url()}/connected?connection=${id}`,
      },
      { idempotencyKey: `connect-${id}` },
    );
    const by = "hosted";
    book.connections.set(id, { id, integration, credentialId: null, sessionId: session.id, by });
    return reply.redirect(session.hosted_url ?? "/", 303);
  });
  // And back. The session's id in the address is only a hint: what counts is the session that Ledgerly began.
  app.get<{ Querystring: { connection?: string } }>("/connected", async (request, reply) => {
    const connection = book.connections.get(String(request.query.connection));
    if (!connection) return await missing(reply);
    await finish(latchkey, connection);
    if (connection.credentialId !== null) return reply.redirect("/", 303);
    return await page(
      reply,
      messagePage("Not connected yet", "The form has not been sent, or its link has expired."),
    );
  });
  app.post<{ Params: { id: string } }>("/connections/:id/disconnect", async (request, reply) => {
    const connection = book.connections.get(request.params.id);
    if (!connection) return await missing(reply);
    if (connection.credentialId !== null)
      await latchkey.credentials.delete(connection.credentialId, {
        idempotencyKey: `disconnect-${connection.id}`,
      });
    book.connections.delete(connection.id);
    return reply.redirect("/", 303);
  });
}

function addEmbedding(app: FastifyInstance, latchkey: Latchkey, book: Book, url: () => string): void {
  // For a frame in Ledgerly's own page, which gets what opens it and nothing else.
  app.post("/embed", async (request, reply) => {
    const integration = INTEGRATIONS.find(({ strategyId }) => strategyId === field(request, "strategy"));
    if (!integration) return await missing(reply);
    const id = newId();
    const session = await latchkey.embeddedCredentialSessions.create(
      {
        origin: url(),
        blueprint_keys: integration.fetches.map(({ blueprint }) => blueprint),
        name: `Ledgerly ${id.slice(0, 8)}`,
      },
      { idempotencyKey: `embed-${id}` },
    );
    const by = "embedded";
    book.connections.set(id, { id, integration, credentialId: null, sessionId: session.id, by });
    return await reply.send({
      connection: id,
      clientToken: session.client_token,
      embedUrl: session.embed_url,
    });
  });
  // The page says that it is done. Whether it is, says the session that Ledgerly began.
  app.post<{ Params: { id: string } }>("/connections/:id/confirm", async (request, reply) => {
    const connection = book.connections.get(request.params.id);
    if (!connection) return await missing(reply);
    await finish(latchkey, connection);
    return await reply.send({ isConnected: connection.credentialId !== null });
  });
}

/** Spec, States and transitions: `completed` alone is usable; whatever else is not terminal, and not known, may still become it. */
async function finish(latchkey: Latchkey, connection: Connection): Promise<void> {
  for (let polls = 0; polls < SESSION_POLLS_MAX && connection.credentialId === null; polls++) {
    const sessions =
      connection.by === "hosted" ? latchkey.credentialSessions : latchkey.embeddedCredentialSessions;
    const session = await sessions.read(connection.sessionId);
    if (session.status === "pending" || session.status === "expired") return;
    if (session.status === "completed") connection.credentialId = session.credential_id;
    else await sleep(SESSION_POLL_MS);
  }
}

function addFetching(app: FastifyInstance, latchkey: Latchkey, book: Book): void {
  app.post<{ Params: { id: string } }>("/connections/:id/fetch", async (request, reply) => {
    const connection = book.connections.get(request.params.id);
    const wanted = connection?.integration.fetches.find(
      ({ blueprint }) => blueprint === field(request, "blueprint"),
    );
    if (!connection || connection.credentialId === null || !wanted) return await missing(reply);
    const body = { ...wanted.body, credential_id: connection.credentialId };
    const run = await latchkey.blueprints.trigger(wanted.blueprint, body, {
      idempotencyKey: `fetch-${newId()}`,
    });
    const fetch: Fetch = { runId: run.id, name: wanted.name, connection };
    book.fetches.set(run.id, fetch);
    return reply.redirect(`/fetched/${run.id}`, 303);
  });
  app.get<{ Params: { run: string } }>("/fetched/:run", async (request, reply) => {
    const fetch = book.fetches.get(request.params.run);
    if (!fetch) return await missing(reply);
    const run = await latchkey.runs.readStatus(fetch.runId);
    const results = run.status === "completed" ? await latchkey.runs.readResults(fetch.runId, DIRECT) : null;
    return await page(reply, runPage({ fetch, run }, results));
  });
}

function field(request: FastifyRequest, name: string): string {
  const body: unknown = request.body;
  const value: unknown = typeof body === "object" && body !== null ? Reflect.get(body, name) : undefined;
  return typeof value === "string" ? value : "";
}

const missing = async (reply: FastifyReply): Promise<FastifyReply> =>
  await page(reply.code(404), messagePage("Not found", "Ledgerly has nothing of that name."));

async function page(reply: FastifyReply, content: ReturnType<typeof messagePage>): Promise<FastifyReply> {
  return reply.type("text/html; charset=utf-8").send(String(await content));
}
