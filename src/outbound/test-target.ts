import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { duplexPair } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import type { buildConnector } from "undici";
import { readTestOutcome, TEST_TARGET_ORIGIN, type TestOutcome } from "#domain/test-mode.ts";
import { lazy } from "#lib/lazy.ts";

/** The longest body that the test target reads: 10,000 records of a trigger. */
const BODY_BYTES_MAX = 10_000_000;
const SLOW_MS = 5_000;
const SESSION = "test_session";

/**
 * The system that test mode logs in to and reads from: an HTTP server that listens nowhere. A connection is a pair of streams in memory, so
 * the gate sends to it what it sends to any target, and nothing leaves the process. It keeps nothing: what a login decided is in its cookie.
 */
export const connectTestTarget: buildConnector.connector = (_options, callback) => {
  const [near, far] = duplexPair();
  // What the server and the client set at sockets of a network.
  const settings = ["setNoDelay", "setKeepAlive", "setTimeout", "ref", "unref"] as const;
  for (const end of [near, far]) for (const name of settings) Object.assign(end, { [name]: () => end });
  // A pair of streams does not hand on that the other end was destroyed, as a broken connection would.
  near.once("close", () => far.destroy());
  far.once("close", () => near.destroy());
  testServer().emit("connection", far);
  queueMicrotask(() => callback(null, near as unknown as Socket));
};

const testServer = lazy((): Server => {
  const server = createServer({ keepAliveTimeout: 0 }, (request, response) => {
    answer(request, response).catch(() => request.socket.destroy());
  });
  return server;
});

async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const url = new URL(request.url ?? "/", TEST_TARGET_ORIGIN);
  const body = await readBody(request);
  const session = readSession(request);
  const place = `${request.method} ${url.pathname}`;
  if (place === "POST /login") return await logIn(response, body);
  if (place === "POST /login/code") return welcome(response, "");
  if (place === "GET /me") return send(response, session === "code_required" ? 401 : 200, {});
  if (place === "GET /plan") {
    const outcome = readTestOutcome(url.searchParams.get("outcome") ?? "") ?? session ?? "success";
    return send(response, 200, { outcome });
  }
  if (place === "POST /records") return await sendRecords(response, JSON.parse(body) as Asked);
  if (place === "POST /writes") return write(response, JSON.parse(body) as Asked);
  return send(response, 404, { message: "The test target has no such page" });
}

/** What a node of test mode asks for. */
interface Asked {
  readonly outcome?: string;
  readonly records?: readonly unknown[];
}

async function readBody(request: IncomingMessage): Promise<string> {
  const parts: Buffer[] = [];
  let bytes = 0;
  for await (const part of request as AsyncIterable<Buffer>) {
    bytes += part.length;
    if (bytes > BODY_BYTES_MAX) throw new Error("the body is too long");
    parts.push(part);
  }
  return Buffer.concat(parts).toString();
}

function readSession(request: IncomingMessage): TestOutcome | null {
  const [, value = ""] = new RegExp(`${SESSION}=([a-z0-9_]*)`).exec(request.headers.cookie ?? "") ?? [];
  return readTestOutcome(value);
}

function send(response: ServerResponse, status: number, body: object): void {
  response.statusCode = status;
  response.setHeader("Content-Type", "application/json");
  response.end(JSON.stringify(body));
}

function welcome(response: ServerResponse, session: TestOutcome | "", next = "done"): void {
  response.setHeader("Set-Cookie", `${SESSION}=${session}; Path=/; HttpOnly; Secure`);
  send(response, 200, { next });
}

async function logIn(response: ServerResponse, form: string): Promise<void> {
  const outcomes = [...new URLSearchParams(form).values()].map(readTestOutcome);
  const outcome = outcomes.find((each) => each !== null) ?? null;
  switch (outcome) {
    case "wrong_password":
      return send(response, 401, { message: "Wrong user name or password" });
    case "account_locked":
      return send(response, 423, { message: "This login is locked" });
    case "login_throttled":
      response.setHeader("Retry-After", "1");
      return send(response, 429, { message: "Too many logins" });
    case "login_crash":
      return void response.destroy();
    case "code_required":
      return welcome(response, outcome, "code");
    case "login_slow":
      await sleep(SLOW_MS);
      return welcome(response, outcome);
    default:
      return welcome(response, outcome ?? "");
  }
}

async function sendRecords(response: ServerResponse, { outcome, records }: Asked): Promise<void> {
  switch (outcome) {
    case "throttled":
      response.setHeader("Retry-After", "1");
      return send(response, 429, { message: "Too many requests" });
    case "server_error":
      return send(response, 500, { message: "The target has failed" });
    case "target_crash":
      response.writeHead(200, { "Content-Type": "application/json", "Content-Length": "1000" });
      response.write(`{"records": [`, () => response.destroy());
      return;
    case "page_changed":
      response.setHeader("Content-Type", "text/html");
      return void response.end("<!doctype html><title>Our portal has a new look</title>");
    case "slow":
      await sleep(SLOW_MS);
      break;
    case undefined:
    default:
  }
  send(response, 200, { records: records ?? recordsOf(outcome) });
}

function recordsOf(outcome: string | undefined): readonly object[] {
  const make = (count: number, more: object = {}): readonly object[] =>
    Array.from({ length: count }, (_, index) => ({
      number: `T-${String(index + 1).padStart(5, "0")}`,
      name: `Test record ${index + 1}`,
      amount: (index + 1) * 10.5,
      date: "2026-01-31",
      ...more,
    }));
  switch (outcome) {
    case "no_records":
      return [];
    case "records_500":
      return make(500);
    case "large_results":
      return make(8_000, { note: "x".repeat(800) });
    case "invalid_records":
      return make(3).map((record, index) => (index === 1 ? { ...record, test_invalid: true } : record));
    case undefined:
    default:
      return make(3);
  }
}

function write(response: ServerResponse, { outcome }: Asked): void {
  if (outcome === "write_uncertain") return void response.destroy();
  if (outcome === "write_refused")
    return send(response, 409, { message: "The test target refuses this write" });
  return send(response, 201, { number: "W-00001" });
}
