import assert from "node:assert/strict";
import { connect, type Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";

/** An answer as it stood on the wire. */
export interface RawAnswer {
  readonly status: number;
  /** Names in lower case; repeated ones joined. */
  readonly headers: Readonly<Record<string, string>>;
  readonly text: string;
}

export interface Exchange {
  readonly answers: readonly RawAnswer[];
  /** Interim answers (1xx) that came. */
  readonly interim: readonly number[];
  /** Whether the service ended the connection. */
  readonly closed: boolean;
}

/** A connection that keeps all it is sent. */
export interface Connection {
  readonly socket: Socket;
  readonly received: () => Buffer;
  readonly isClosed: () => boolean;
}

export async function openConnection(serviceUrl: string): Promise<Connection> {
  const { hostname, port } = new URL(serviceUrl);
  const socket = connect({ host: hostname, port: Number(port), allowHalfOpen: true });
  const chunks: Buffer[] = [];
  let closed = false;
  socket.on("data", (chunk) => chunks.push(chunk));
  socket.on("end", () => {
    closed = true;
    socket.end();
  });
  socket.on("close", () => (closed = true));
  await new Promise<void>((resolve, reject) => socket.once("connect", resolve).once("error", reject));
  // A reset is an end as well; the test looks at what was answered before it.
  socket.on("error", () => (closed = true));
  return { socket, received: () => Buffer.concat(chunks), isClosed: () => closed };
}

export async function waitFor(isSo: () => boolean, timeoutMs: number): Promise<boolean> {
  const end = performance.now() + timeoutMs;
  while (!isSo()) {
    if (performance.now() > end) return false;
    await sleep(5);
  }
  return true;
}

/**
 * Sends bytes and waits until `count` final answers are there or the service ends the connection (`timeoutMs` at most). `methods`
 * says which answers have no body.
 */
export async function exchange(
  serviceUrl: string,
  bytes: string | Uint8Array,
  { count = 1, timeoutMs = 30_000, methods = [] as readonly string[], settleMs = 0 } = {},
): Promise<Exchange> {
  const connection = await openConnection(serviceUrl);
  connection.socket.write(typeof bytes === "string" ? Buffer.from(bytes, "latin1") : bytes);
  let read = parseAnswers(connection.received(), methods);
  await waitFor(() => {
    read = parseAnswers(connection.received(), methods);
    return connection.isClosed() || read.answers.length >= count;
  }, timeoutMs);
  // The end follows the answer.
  if (read.answers.at(-1)?.headers["connection"] === "close") await waitFor(connection.isClosed, 30_000);
  if (settleMs > 0) await sleep(settleMs);
  read = parseAnswers(connection.received(), methods);
  const closed = connection.isClosed();
  connection.socket.destroy();
  return { ...read, closed };
}

export function parseAnswers(
  bytes: Buffer,
  methods: readonly string[] = [],
): { answers: RawAnswer[]; interim: number[] } {
  const answers: RawAnswer[] = [];
  const interim: number[] = [];
  let at = 0;
  for (;;) {
    const end = bytes.indexOf("\r\n\r\n", at);
    if (end < 0) return { answers, interim };
    const [first = "", ...lines] = bytes.toString("latin1", at, end).split("\r\n");
    const status = Number(/^HTTP\/1\.1 (\d{3}) /.exec(first)?.[1]);
    assert.ok(status > 0, `an answer begins with ${JSON.stringify(first)}`);
    at = end + 4;
    if (status < 200) {
      interim.push(status);
      continue;
    }
    const headers: Record<string, string> = {};
    for (const line of lines) {
      const name = line.slice(0, line.indexOf(":")).toLowerCase();
      headers[name] = [
        ...(headers[name] === undefined ? [] : [headers[name]]),
        line.slice(line.indexOf(":") + 1).trim(),
      ].join(", ");
    }
    const isBodiless = methods[answers.length] === "HEAD" || status === 204 || status === 304;
    const length = isBodiless ? 0 : Number(headers["content-length"] ?? 0);
    if (bytes.length < at + length) return { answers, interim };
    answers.push({ status, headers, text: bytes.toString("utf8", at, at + length) });
    at += length;
  }
}

const TYPES = new Map<string, readonly number[]>([
  ["authentication_error", [401]],
  ["authorization_error", [403]],
  ["not_found", [404]],
  ["validation_error", [400, 408, 413, 415, 422, 431]],
  ["conflict", [409]],
  ["rate_limit_exceeded", [429]],
  ["internal_error", [500, 503]],
]);

/** Spec, Error object: exactly one key `error`; the closed set of types, each with its statuses; details of three keys. */
export function assertEnvelope(answer: RawAnswer | undefined, status?: number): void {
  assert.ok(answer, "the service answers");
  if (status !== undefined) assert.equal(answer.status, status, answer.text);
  assert.match(answer.headers["content-type"] ?? "", /^application\/json/);
  assert.match(answer.headers["x-request-id"] ?? "", /^req_[0-9A-Za-z]{20,}$/);
  const body = JSON.parse(answer.text) as { error: Record<string, unknown> };
  assert.deepEqual(Object.keys(body), ["error"]);
  const { type, message, details, ...rest } = body.error;
  assert.deepEqual(rest, {}, "no other key in `error`");
  assert.ok(
    typeof type === "string" && TYPES.get(type)?.includes(answer.status),
    `${String(type)} with status ${answer.status}`,
  );
  assert.ok(typeof message === "string" && message !== "");
  if (details === undefined) return;
  assert.ok(Array.isArray(details) && details.length > 0);
  for (const detail of details as Record<string, unknown>[]) {
    assert.deepEqual(Object.keys(detail).toSorted(), ["code", "field", "message"]);
    assert.ok(typeof detail["message"] === "string");
    for (const key of ["code", "field"]) assert.ok(detail[key] === null || typeof detail[key] === "string");
  }
}
