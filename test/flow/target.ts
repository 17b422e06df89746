import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { setTimeout as sleep } from "node:timers/promises";
import { passwordLogin } from "../password-login.ts";

/** A request as the target saw it, whole. */
export interface TargetRequest {
  readonly method: string;
  readonly path: string;
  readonly query: URLSearchParams;
  readonly headers: IncomingMessage["headers"];
  readonly body: string;
}

export interface TargetAnswer {
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
  /** An object is sent as JSON. */
  readonly body?: unknown;
}

/** A request that waits for its answer until it is released. */
export interface Hold {
  /** Resolves when the request has come in. */
  readonly reached: Promise<TargetRequest>;
  release(): void;
}

/** A third-party system on loopback whose requests can be held, so that a test acts at an exact moment of a run. */
export interface Target {
  readonly url: string;
  /** All requests so far, in the order in which they came in. */
  readonly requests: readonly TargetRequest[];
  /** Holds the next request for which `matches` gives true. Every hold takes one request. */
  hold(matches: (request: TargetRequest) => boolean): Hold;
  /** Forgets the requests so far and lets go of what is held. */
  reset(): void;
  close(): Promise<void>;
}

interface Waiting {
  readonly matches: (request: TargetRequest) => boolean;
  readonly arrived: PromiseWithResolvers<TargetRequest>;
  readonly released: PromiseWithResolvers<void>;
}

export async function startTarget(
  answer: (request: TargetRequest) => TargetAnswer,
  options: { readonly delayMs?: number } = {},
): Promise<Target> {
  const requests: TargetRequest[] = [];
  const waiting: Waiting[] = [];
  const held = new Set<Waiting>();
  const serve = async (incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> => {
    const url = new URL(incoming.url ?? "/", "http://target.invalid");
    const { method = "", headers } = incoming;
    const request = {
      method,
      path: url.pathname,
      query: url.searchParams,
      headers,
      body: await text(incoming),
    };
    requests.push(request);
    const index = waiting.findIndex((hold) => hold.matches(request));
    const [hold] = index === -1 ? [] : waiting.splice(index, 1);
    if (hold) {
      held.add(hold);
      hold.arrived.resolve(request);
      await hold.released.promise;
      held.delete(hold);
    } else if (options.delayMs !== undefined) {
      await sleep(options.delayMs);
    }
    const { status = 200, headers: own = {}, body } = answer(request);
    const isText = typeof body === "string" || body === undefined;
    outgoing.writeHead(status, {
      "content-type": isText ? "text/html; charset=utf-8" : "application/json",
      ...own,
    });
    outgoing.end(isText ? body : JSON.stringify(body));
  };
  const server = createServer((incoming, outgoing) => {
    // A caller that was killed in the middle of its request is no error of the target's.
    serve(incoming, outgoing).catch(() => outgoing.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const releaseAll = (): void => {
    for (const hold of held) hold.released.resolve();
    waiting.length = 0;
  };
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests,
    hold: (matches) => {
      const hold: Waiting = { matches, arrived: Promise.withResolvers(), released: Promise.withResolvers() };
      waiting.push(hold);
      return { reached: hold.arrived.promise, release: () => hold.released.resolve() };
    },
    reset: () => {
      releaseAll();
      requests.length = 0;
    },
    close: async () => {
      releaseAll();
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

export const PAGES = 4;
export const PAGE_ITEMS = 25;
export const ITEM_COUNT = PAGES * PAGE_ITEMS;

/** A form login with a cookie, and two lists of `ITEM_COUNT` items each, in pages by cursor. */
export function ledger(request: TargetRequest): TargetAnswer {
  if (request.path === "/login") {
    const form = new URLSearchParams(request.body);
    const isRight = form.get("username") === "ada" && form.get("password") === "ledger-password";
    return isRight
      ? { status: 302, headers: { location: "/", "set-cookie": "sid=ledger-session; Path=/; HttpOnly" } }
      : { status: 401 };
  }
  if (request.path === "/open") return { body: { items: pageOf("open", 0), next: null } };
  if (request.headers.cookie !== "sid=ledger-session") return { status: 401, body: {} };
  const page = Number(request.query.get("cursor") ?? "0");
  return {
    body: { items: pageOf(request.path.slice(1), page), next: page + 1 < PAGES ? String(page + 1) : null },
  };
}

function pageOf(list: string, page: number): { id: string }[] {
  return Array.from({ length: PAGE_ITEMS }, (_, index) => ({ id: `${list}-${page * PAGE_ITEMS + index}` }));
}

/** The ids of a list's items, in order: what a run that reads it must give. */
export function idsOf(list: string): readonly string[] {
  return Array.from({ length: ITEM_COUNT }, (_, index) => `${list}-${index}`);
}

export const LEDGER_LOGIN = { username: "ada", password: "ledger-password" };

/** `ledger` reads both lists with a credential; `open-list` reads one page without. */
export function ledgerDocuments(
  url: string,
  strategy: { readonly cache?: string; readonly concurrency?: number } = {},
): string[] {
  return [
    `account: acme
allowed_origins: [http://localhost:3000]`,
    `strategy: strat_ledger
account: acme
hosts: [${url}]
${strategy.concurrency === undefined ? "" : `concurrency: ${strategy.concurrency}`}
${passwordLogin(302, strategy.cache === undefined ? "" : `\n  cache: ${strategy.cache}`)}`,
    `blueprint: ledger
account: acme
credentials:
  ledger: { strategy: strat_ledger }
nodes:
  - id: first
    type: http
    credential: ledger
    milestone: reading_first
    request: { method: GET, url: /first }
    paginate: { cursor: next, param: cursor, max_pages: 50 }
    records: items
  - id: second
    type: http
    credential: ledger
    milestone: reading_second
    request: { method: GET, url: /second }
    paginate: { cursor: next, param: cursor, max_pages: 50 }
    records: items
  - { id: first_out, type: output, refKey: first, from: first }
  - { id: second_out, type: output, refKey: second, from: second }`,
    `blueprint: open-list
account: acme
hosts: [${url}]
nodes:
  - id: list
    type: http
    request: { method: GET, url: "${url}/open" }
    records: items
  - { id: out, type: output, refKey: list, from: list }`,
  ];
}
