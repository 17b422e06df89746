import {
  createServer,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type ServerOptions,
  type ServerResponse,
} from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";

/** A request as the target got it. */
export interface Seen {
  readonly method: string;
  readonly path: string;
  readonly query: URLSearchParams;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
  readonly bytes: Buffer;
  /** How many requests of any kind were being answered when it came, itself included. */
  readonly underWay: number;
  readonly atMs: number;
}

export interface Answer {
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string | readonly string[]>>;
  readonly json?: unknown;
  readonly text?: string;
  readonly html?: string;
  readonly bytes?: Uint8Array;
  readonly delayMs?: number;
  /** Closes the connection instead of answering. */
  readonly drop?: boolean;
}

/** What a route answers; a function sees the request and how many came to the route before it. */
export type Handler = Answer | ((seen: Seen, before: number) => Answer | Promise<Answer>);

/** Another company's system, on loopback: it does what a test tells it to and keeps what it saw. */
export interface Target extends AsyncDisposable {
  /** Its origin. */
  readonly url: string;
  /** `on("GET /api/items", …)`: from now on. A route that was never told answers 404. */
  on(route: string, handler: Handler): void;
  /** The requests to a route, oldest first. */
  seen(route: string): readonly Seen[];
  readonly all: readonly Seen[];
}

/** On a free port of loopback, unless it is to be found where documents already say. Throws when somebody else listens there. */
export async function openTarget(
  options: ServerOptions = {},
  place: { readonly host: string; readonly port: number } = { host: "127.0.0.1", port: 0 },
): Promise<Target> {
  const routes = new Map<string, Handler>();
  const all: Seen[] = [];
  let underWay = 0;
  const seenOf = (route: string): readonly Seen[] =>
    all.filter(({ method, path }) => `${method} ${path}` === route);
  const server = createServer(options, (request, response) => {
    underWay += 1;
    response.once("close", () => (underWay -= 1));
    const mine = underWay;
    void readSeen(request, mine).then(async (seen) => {
      const route = `${seen.method} ${seen.path}`;
      const before = seenOf(route).length;
      all.push(seen);
      const handler = routes.get(route);
      await write(
        response,
        typeof handler === "function" ? await handler(seen, before) : (handler ?? { status: 404 }),
      );
    });
  });
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject).listen(place.port, place.host, resolve);
  });
  return {
    url: `http://${place.host}:${(server.address() as AddressInfo).port}`,
    all,
    on: (route, handler) => void routes.set(route, handler),
    seen: seenOf,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

async function readSeen(request: IncomingMessage, underWay: number): Promise<Seen> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  const url = new URL(request.url ?? "/", "http://target.invalid");
  const bytes = Buffer.concat(chunks);
  return {
    method: request.method ?? "",
    path: url.pathname,
    query: url.searchParams,
    headers: request.headers,
    body: bytes.toString("utf8"),
    bytes,
    underWay,
    atMs: performance.now(),
  };
}

async function write(response: ServerResponse, answer: Answer): Promise<void> {
  if (answer.delayMs !== undefined) await sleep(answer.delayMs);
  if (answer.drop === true) return void response.destroy();
  const [type, body] =
    answer.json !== undefined
      ? ["application/json", JSON.stringify(answer.json)]
      : answer.html !== undefined
        ? ["text/html; charset=utf-8", answer.html]
        : answer.bytes !== undefined
          ? ["application/octet-stream", answer.bytes]
          : ["text/plain; charset=utf-8", answer.text ?? ""];
  response.writeHead(answer.status ?? 200, { "content-type": type as string, ...answer.headers } as never);
  response.end(body);
}

/** Redirects. */
export const to = (location: string, status = 302): Answer => ({ status, headers: { location } });
