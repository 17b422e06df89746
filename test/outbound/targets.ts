import assert from "node:assert/strict";
import { createServer, type IncomingMessage, type RequestListener, type ServerResponse } from "node:http";
import { createServer as createTcpServer, type AddressInfo, type Server, type Socket } from "node:net";
import type { TestContext } from "node:test";
import { GateError, type GateFailure } from "#outbound/gate-error.ts";
import {
  openGate,
  type Gate,
  type GateOptions,
  type GatePolicy,
  type GateRequest,
  type GateResponse,
} from "#outbound/gate.ts";

/** A secret that must never show in a message. */
export const CANARY = "canary-9f2c41d7";

export interface Seen {
  readonly method: string;
  readonly url: string;
  readonly headers: IncomingMessage["headers"];
  readonly body: string;
}

export interface Target {
  readonly origin: string;
  readonly port: number;
  readonly seen: readonly Seen[];
  /** Connections taken so far. */
  readonly connections: number;
}

type Handler = (seen: Seen, response: ServerResponse, request: IncomingMessage) => void;

async function listen(context: TestContext, server: Server, host: string, port = 0): Promise<number> {
  const sockets = new Set<Socket>();
  server.on("connection", (socket: Socket) => {
    sockets.add(socket);
    socket.on("error", () => undefined).on("close", () => sockets.delete(socket));
  });
  await new Promise<void>((resolve, reject) => server.once("error", reject).listen(port, host, resolve));
  context.after(async () => {
    for (const socket of sockets) socket.destroy();
    await new Promise((resolve) => server.close(resolve));
  });
  return (server.address() as AddressInfo).port;
}

/** A real server on loopback that remembers what it was asked. */
export async function startTarget(
  context: TestContext,
  handle: Handler,
  host = "127.0.0.1",
): Promise<Target> {
  const seen: Seen[] = [];
  let connections = 0;
  const listener: RequestListener = (request, response) => {
    const chunks: Buffer[] = [];
    request.on("error", () => undefined);
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      const { method = "", url = "", headers } = request;
      const one = { method, url, headers, body: Buffer.concat(chunks).toString("utf8") };
      seen.push(one);
      handle(one, response, request);
    });
  };
  const server = createServer(listener).on("connection", () => connections++);
  const port = await listen(context, server, host);
  return {
    origin: `http://${host}:${port}`,
    port,
    seen,
    get connections() {
      return connections;
    },
  };
}

/** Takes connections, answers as it is told, and counts. */
export async function startTcp(
  context: TestContext,
  onSocket: (socket: Socket) => void = (socket) => socket.destroy(),
  host = "127.0.0.1",
  wantedPort = 0,
): Promise<{ readonly port: number; readonly connections: number }> {
  let connections = 0;
  const server = createTcpServer((socket) => {
    connections++;
    onSocket(socket);
  });
  const port = await listen(context, server, host, wantedPort);
  return {
    port,
    get connections() {
      return connections;
    },
  };
}

export function openTestGate(context: TestContext, options: GateOptions): Gate {
  const gate = openGate(options);
  context.after(() => gate.close());
  return gate;
}

export const policyFor = (origins: readonly string[], more: Partial<GatePolicy> = {}): GatePolicy => ({
  origins,
  redirectsMax: 5,
  maxBytes: 1_000_000,
  timeoutMs: 5_000,
  ...more,
});

export function send(
  gate: Gate,
  url: string,
  policy: GatePolicy,
  more: Partial<Omit<GateRequest, "url">> = {},
  signal: AbortSignal = new AbortController().signal,
): Promise<GateResponse> {
  return gate.send({ method: "GET", headers: [], ...more, url: new URL(url) }, policy, signal);
}

/** The exchange fails in this way, and what it says holds no secret and no cause that could. */
export async function assertFails(
  exchange: Promise<unknown>,
  failure: GateFailure,
  message?: RegExp,
): Promise<GateError> {
  const error: unknown = await exchange.then(
    () => assert.fail("the exchange should have failed"),
    (reason: unknown) => reason,
  );
  assert.ok(error instanceof GateError, `a GateError, not ${String(error)}`);
  assert.equal(error.failure, failure, error.message);
  if (message !== undefined) assert.match(error.message, message);
  assert.ok(!`${error.message}${error.stack ?? ""}`.includes(CANARY), error.message);
  assert.equal(error.cause, undefined);
  return error;
}
