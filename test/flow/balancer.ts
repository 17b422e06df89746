import { createServer, request as send, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";

/** Before several processes of the service: sends each request, once, to one that says it is ready. */
export interface Balancer extends AsyncDisposable {
  readonly url: string;
  add(backendUrl: string): void;
  remove(backendUrl: string): void;
}

const PROBE_MS = 100;
const NOBODY_MS_MAX = 30_000;
const KEEP_ALIVE_MS = 600_000;

export async function startBalancer(): Promise<Balancer> {
  const ready = new Map<string, boolean>();
  let turn = 0;
  let isOpen = true;
  const probe = async (url: string): Promise<void> => {
    for (; isOpen && ready.has(url); await sleep(PROBE_MS)) {
      const isReady = await fetch(`${url}/readyz`).then(
        ({ ok }) => ok,
        () => false,
      );
      if (ready.has(url)) ready.set(url, isReady);
    }
  };
  const choose = async (): Promise<string | undefined> => {
    for (const deadline = performance.now() + NOBODY_MS_MAX; performance.now() < deadline; await sleep(20)) {
      const able = [...ready].flatMap(([url, isReady]) => (isReady ? [url] : []));
      if (able.length > 0) return able[turn++ % able.length];
    }
    return undefined;
  };
  const pass = async (incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> => {
    const backend = await choose();
    if (backend === undefined) return void outgoing.writeHead(502).end('"nobody is ready"');
    // A connection for each request, and no second try: what fails, fails.
    const passed = send(new URL(incoming.url ?? "/", backend), {
      method: incoming.method,
      headers: { ...incoming.headers, connection: "close" },
      agent: false,
    });
    passed.on("response", (answer) => {
      const { connection: _connection, ...headers } = answer.headers;
      outgoing.writeHead(answer.statusCode ?? 502, headers);
      answer.pipe(outgoing);
      answer.on("error", () => outgoing.destroy());
    });
    passed.on("error", (error) => {
      if (outgoing.headersSent) outgoing.destroy();
      else outgoing.writeHead(502).end(JSON.stringify(error.message));
    });
    incoming.pipe(passed);
  };
  // An idle connection stays open: a client that uses it just as it is closed would blame the service.
  const server = createServer(
    { keepAliveTimeout: KEEP_ALIVE_MS },
    (incoming, outgoing) => void pass(incoming, outgoing),
  );
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    add: (url) => {
      ready.set(url, false);
      void probe(url);
    },
    remove: (url) => void ready.delete(url),
    [Symbol.asyncDispose]: async () => {
      isOpen = false;
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
