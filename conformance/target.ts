import { createHmac, randomUUID } from "node:crypto";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { text } from "node:stream/consumers";

/** A request that waits at the target until it is released. */
export interface Hold {
  /** Resolves when the request has come in. */
  readonly reached: Promise<void>;
  release(): void;
}

/** The third-party system that the fixture Blueprints read. */
export interface Target {
  /** Holds the request that carries this name: as user name at the login, as token, or as `hold` of the open list. */
  hold(name: string): Hold;
  close(): Promise<void>;
}

/** The one secret that `/login/code` knows, in base32; the codes are those of RFC 6238 with its defaults. */
export const CODE_SECRET = "GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ";
const CODE_SECRET_BYTES = Buffer.from("12345678901234567890");
const STEP_MS = 30_000;

/** Every login takes a password of this beginning, so that each case can have a secret of its own. */
export const RIGHT_PASSWORD = "right-";

/** The entries of a signed-in user; the third breaks a rule of the Blueprint. */
export const ENTRIES = [
  { number: "E-1", total: 12.5 },
  { number: "E-2", total: 0 },
  { number: "E-3", total: -7 },
] as const;

interface Waiting {
  readonly reached: PromiseWithResolvers<void>;
  readonly released: PromiseWithResolvers<void>;
}

/** Listens on the origin's port: on loopback when the origin is, else on every address. */
export async function startTarget(origin: string): Promise<Target> {
  const { hostname, port } = new URL(origin);
  const holds = new Map<string, Waiting>();
  const sessions = new Set<string>();
  const wait = async (name: string | null | undefined): Promise<void> => {
    const hold = holds.get(name ?? "");
    hold?.reached.resolve();
    await hold?.released.promise;
  };
  const server = createServer((request, response) => {
    // A caller that hangs up is no error of the target's.
    answer(request, response, { sessions, wait }).catch(() => response.destroy());
  });
  const host = ["127.0.0.1", "localhost", "[::1]"].includes(hostname)
    ? hostname.replace(/[[\]]/g, "")
    : undefined;
  await new Promise<void>((resolve, reject) => {
    server
      .once("error", reject)
      .listen({ port: Number(port || 80), ...(host === undefined ? {} : { host }) }, resolve);
  });
  // node:test ends when nothing keeps the process alive: the runner decides, not this server.
  server.unref();
  return {
    hold: (name) => {
      const waiting: Waiting = { reached: Promise.withResolvers(), released: Promise.withResolvers() };
      holds.set(name, waiting);
      const release = (): void => {
        holds.delete(name);
        waiting.released.resolve();
      };
      return { reached: waiting.reached.promise, release };
    },
    close: async () => {
      for (const hold of holds.values()) hold.released.resolve();
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

interface State {
  readonly sessions: Set<string>;
  readonly wait: (name: string | null | undefined) => Promise<void>;
}

async function answer(request: IncomingMessage, response: ServerResponse, state: State): Promise<void> {
  const url = new URL(request.url ?? "/", "http://target.invalid");
  const body = await text(request);
  const form = new URLSearchParams(body);
  const token = /^Bearer (.+)$/.exec(request.headers.authorization ?? "")?.[1];
  switch (`${request.method} ${url.pathname}`) {
    case "POST /login":
      await state.wait(form.get("username"));
      return signIn(response, state, form.get("password")?.startsWith(RIGHT_PASSWORD) === true);
    case "POST /login/code":
      return signIn(response, state, isCurrentCode(form.get("code")));
    case "GET /entries":
      return state.sessions.has(/\bsid=([\w-]+)/.exec(request.headers.cookie ?? "")?.[1] ?? "")
        ? json(response, { items: ENTRIES })
        : refuse(response);
    case "GET /by-token":
      await state.wait(token);
      return token === undefined ? refuse(response) : json(response, { items: [{ system: "token" }] });
    case "GET /by-header":
      return request.headers["x-conformance-key"] === undefined
        ? refuse(response)
        : json(response, { items: [{ system: "header" }] });
    case "GET /list":
      await state.wait(url.searchParams.get("hold"));
      return json(response, { items: [{ name: "first" }, { name: "second" }] });
    case "GET /sized":
      return json(response, { items: recordsOf(Number(url.searchParams.get("bytes"))) });
    case "POST /echo":
      return send(response, 200, body);
    default:
      return send(response, 404, "{}");
  }
}

function signIn(response: ServerResponse, { sessions }: State, isRight: boolean): void {
  if (!isRight) return refuse(response);
  const id = randomUUID();
  sessions.add(id);
  response.writeHead(302, { location: "/", "set-cookie": `sid=${id}; Path=/; HttpOnly` }).end();
}

/** RFC 6238: six digits, SHA-1, 30 s; the step before and the one after count too. */
function isCurrentCode(code: string | null): boolean {
  const now = Math.floor(Date.now() / STEP_MS);
  return [now - 1, now, now + 1].some((step) => codeOf(step) === code);
}

function codeOf(step: number): string {
  const counter = Buffer.alloc(8);
  counter.writeBigUInt64BE(BigInt(step));
  const digest = createHmac("sha1", CODE_SECRET_BYTES).update(counter).digest();
  const at = (digest.at(-1) ?? 0) & 0xf;
  return String((digest.readUInt32BE(at) & 0x7fffffff) % 1_000_000).padStart(6, "0");
}

const RECORD_TEXT = "x".repeat(1_000);

/** Records whose JSON is about `bytes` long, with little on top. */
function recordsOf(bytes: number): readonly { text: string }[] {
  return Array.from({ length: Math.max(1, Math.ceil(bytes / RECORD_TEXT.length)) }, () => ({
    text: RECORD_TEXT,
  }));
}

const refuse = (response: ServerResponse): void => send(response, 401, "{}");
const json = (response: ServerResponse, body: unknown): void => send(response, 200, JSON.stringify(body));

function send(response: ServerResponse, status: number, body: string): void {
  response.writeHead(status, { "content-type": "application/json" }).end(body);
}
