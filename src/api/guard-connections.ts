import type { IncomingMessage, Server, ServerResponse } from "node:http";
import type { Duplex } from "node:stream";
import type { Socket } from "node:net";
import { Problem } from "#domain/problem.ts";
import { clientErrorAnswer } from "./render-problem.ts";

/** An unused body up to this size is read to its end, so that the connection can be reused. */
const UNREAD_BYTES_MAX = 65_536;
/** How long a refused connection stays open, unread, so that the answer arrives before the reset. */
const LINGER_MS = 500;

/** Node.js's own limit would answer later pipelined requests without the error envelope. */
const REQUESTS_PER_CONNECTION_MAX = 1_000;

/** The state of a connection: its pending answers in order, and the number of its requests. */
interface Ledger {
  readonly owed: Set<ServerResponse>;
  requests: number;
}

const ledgers = new WeakMap<Duplex, Ledger>();

/** Replaces behaviour of `node:http` that would answer without the error envelope, or before authentication. docs/decisions/0028. */
export function guardConnections(server: Server): void {
  server.prependListener("request", (request: IncomingMessage, response: ServerResponse) => {
    const ledger = ledgers.get(request.socket) ?? { owed: new Set(), requests: 0 };
    ledgers.set(request.socket, ledger);
    ledger.owed.add(response);
    response.once("close", () => ledger.owed.delete(response));
    if (++ledger.requests >= REQUESTS_PER_CONNECTION_MAX) response.shouldKeepAlive = false;
  });
  server.on("checkContinue", (request: IncomingMessage, response: ServerResponse) => {
    // `100 Continue` is sent when the body is first read, which is after authentication.
    const continueWhenRead = (event: string | symbol): void => {
      if (event !== "data" && event !== "readable") return;
      request.off("newListener", continueWhenRead);
      if (!response.headersSent) response.writeContinue();
    };
    request.on("newListener", continueWhenRead);
    server.emit("request", request, response);
  });
  // RFC 9110, 10.1.1: an unknown expectation may be ignored.
  server.on("checkExpectation", (request, response) => server.emit("request", request, response));
  server.on("connect", (_request: IncomingMessage, socket: Duplex) => {
    socket.on("error", () => {});
    refuse(socket, {});
  });
}

/** Answers a request that the HTTP parser refuses, after the answers to earlier requests. */
export function refuseConnection(error: { readonly code?: string }, socket: Socket): void {
  if (!socket.writable) return void socket.destroy();
  const answers = [...(ledgers.get(socket)?.owed ?? [])];
  // The last request is refused itself if its body is what the parser could not read.
  const broken = answers.find((response) => !response.req.complete);
  if (broken?.headersSent) return void socket.destroy();
  const before = answers.findLast((response) => response.req.complete);
  if (before === undefined) return refuse(socket, error);
  before.once("close", () => refuse(socket, error));
}

function refuse(socket: Duplex, error: { readonly code?: string }): void {
  if (!socket.writable) return void socket.destroy();
  socket.pause();
  socket.end(clientErrorAnswer(error));
  setTimeout(() => socket.destroy(), LINGER_MS).unref();
}

/**
 * Refuses valid HTTP that this service does not accept: two `Host` headers, an absolute form, `Upgrade`. Throws Problem 400, and 503 for
 * requests pipelined after a connection's last one.
 */
export function checkRequestShape(request: IncomingMessage): void {
  if ((ledgers.get(request.socket)?.requests ?? 0) > REQUESTS_PER_CONNECTION_MAX) {
    throw new Problem("internal_error", "The connection has reached its request limit. Open another one.", {
      status: 503,
      headers: { "Retry-After": "0", Connection: "close" },
    });
  }
  const hosts = request.headersDistinct["host"]?.length ?? 0;
  const isPlain = hosts === 1 || (hosts === 0 && request.httpVersion === "1.0");
  if (isPlain && /^[/*]/.test(request.url ?? "") && request.headers.upgrade === undefined) return;
  throw new Problem(
    "validation_error",
    "The request is malformed: one Host header, a path, and no Upgrade are expected.",
    {
      status: 400,
      headers: { Connection: "close" },
    },
  );
}

/**
 * Whether the connection must end with the answer, because reading the rest of the body costs too much. Then it lingers,
 * unread, so that the caller gets the answer before the reset.
 */
export function endsWithAnswer(request: IncomingMessage): boolean {
  if (!isBodyLeftUnread(request)) return false;
  const { socket } = request;
  // Node.js calls this when the answer is written; it would reset the connection at once, and the answer would be lost.
  socket.destroySoon = () => {
    socket.end();
    // Deferred until Node.js has read on, as it does for a connection that is kept alive.
    setImmediate(() => socket.pause());
    setTimeout(() => socket.destroy(), LINGER_MS).unref();
  };
  return true;
}

function isBodyLeftUnread(request: IncomingMessage): boolean {
  if (request.complete) return false;
  if (request.headers["transfer-encoding"] !== undefined) return true;
  const length = Number(request.headers["content-length"] ?? 0);
  return length > UNREAD_BYTES_MAX || (length > 0 && request.headers.expect !== undefined);
}
