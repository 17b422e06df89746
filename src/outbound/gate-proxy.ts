import { randomBytes, timingSafeEqual } from "node:crypto";
import {
  createServer,
  request as sendRequest,
  STATUS_CODES,
  type IncomingMessage,
  type ServerResponse,
} from "node:http";
import type { AddressInfo, Server, Socket } from "node:net";
import { pipeline, type Duplex } from "node:stream";
import type { buildConnector } from "undici";
import { must } from "#lib/assert.ts";
import { bareHost } from "./addresses.ts";
import { GateError } from "./gate-error.ts";

/** What one user of the proxy may reach. */
export interface ProxyPolicy {
  /**
   * Called for each connection before the name is looked up. `url` has the scheme `http:` for a request that is not encrypted, and
   * `https:` for a tunnel, which is also how `ws:` arrives. Throws GateError if it may not be reached; no other error is expected.
   */
  admit(url: URL, isTunnel: boolean): Promise<void>;
  /** Told what was refused: by `admit`, or because of its address. */
  refused(url: URL, reason: string): void;
}

/** A proxy on loopback for one program, which is asked for these credentials. */
export interface GateProxy {
  /** `http://127.0.0.1:PORT` */
  readonly server: string;
  readonly username: string;
  readonly password: string;
  /** Ends all connections at once. */
  close(): Promise<void>;
}

/** Connects to one origin by the gate's rules. */
export type ConnectTo = (origin: URL) => buildConnector.connector;

const HEADER_BYTES_MAX = 65_536;
/** Headers between the program and the proxy; the target never sees them. */
const PROXY_HEADERS = /^(proxy-.*|connection|keep-alive|te|trailer|upgrade)$/;

/**
 * The gate for programs that speak HTTP by themselves: CONNECT for tunnels (TLS, WebSockets), and whole URLs for `http:`. Names
 * are looked up here, once for each connection, and addresses are checked by the same rules as those of our own requests.
 * `listener`: one that listens already, on loopback of the program's own network.
 */
export async function openGateProxy(
  connectTo: ConnectTo,
  policy: ProxyPolicy,
  listener?: Server,
): Promise<GateProxy> {
  const [username, password] = ["latchkey", randomBytes(32).toString("base64url")];
  const expected = Buffer.from(`Basic ${Buffer.from(`${username}:${password}`).toString("base64")}`);
  const isKnown = ({ headers }: IncomingMessage): boolean => {
    const given = Buffer.from(headers["proxy-authorization"] ?? "");
    return given.length === expected.length && timingSafeEqual(given, expected);
  };
  const sockets = new Set<Duplex>();
  const track = <T extends Duplex>(socket: T): T => {
    sockets.add(socket);
    socket.on("error", () => undefined).once("close", () => sockets.delete(socket));
    return socket;
  };
  const reach = async (url: URL, isTunnel: boolean): Promise<Socket> => {
    try {
      await policy.admit(url, isTunnel);
      return track(await connect(connectTo, url));
    } catch (error) {
      if (error instanceof GateError && error.failure === "refused") policy.refused(url, error.message);
      throw error;
    }
  };
  const server = createServer({ maxHeaderSize: HEADER_BYTES_MAX, requestTimeout: 0 })
    .on("connection", track)
    .on("request", (asked, answer) => void forward(asked, answer, isKnown, reach))
    .on("connect", (asked, client, head) => void tunnel(asked, client, head, isKnown, reach))
    .on("upgrade", (_asked, client) => client.destroy());
  await new Promise<void>((resolve, reject) =>
    server.once("error", reject).listen(listener ?? { port: 0, host: "127.0.0.1" }, resolve),
  );
  const { port } = server.address() as AddressInfo;
  return {
    server: `http://127.0.0.1:${port}`,
    username,
    password,
    close: async () => {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  };
}

type Reach = (url: URL, isTunnel: boolean) => Promise<Socket>;
type IsKnown = (asked: IncomingMessage) => boolean;

async function tunnel(
  asked: IncomingMessage,
  client: Duplex,
  head: Buffer,
  isKnown: IsKnown,
  reach: Reach,
): Promise<void> {
  const target = URL.parse(`https://${asked.url ?? ""}`);
  if (!isKnown(asked)) return void client.end(asStatus(407, `proxy-authenticate: ${REALM}\r\n`));
  if (target === null || target.username !== "" || target.pathname !== "/")
    return void client.end(asStatus(400));
  try {
    const socket = await reach(target, true);
    client.write("HTTP/1.1 200 Connected\r\n\r\n");
    if (head.length > 0) socket.write(head);
    const endBoth = (error: Error | null | undefined): void => {
      if (error) for (const each of [client, socket]) each.destroy();
    };
    pipeline(client, socket, endBoth);
    pipeline(socket, client, endBoth);
  } catch (error) {
    client.end(asStatus(error instanceof GateError && error.failure === "refused" ? 403 : 502));
  }
}

const REALM = 'Basic realm="latchkey"';

const asStatus = (status: number, headers = ""): string =>
  `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ""}\r\n${headers}connection: close\r\ncontent-length: 0\r\n\r\n`;

async function forward(
  asked: IncomingMessage,
  answer: ServerResponse,
  isKnown: IsKnown,
  reach: Reach,
): Promise<void> {
  asked.on("error", () => undefined);
  const url = URL.parse(asked.url ?? "");
  if (!isKnown(asked)) {
    const headers = { "proxy-authenticate": REALM, connection: "close", "content-length": 0 };
    return void answer.writeHead(407, headers).end();
  }
  if (url?.protocol !== "http:" || url.username !== "" || url.password !== "") return void answer.destroy();
  try {
    const socket = await reach(url, false);
    const sent = sendRequest(url, {
      method: asked.method,
      headers: [...plainHeaders(asked.rawHeaders), "host", url.host, "connection", "close"],
      createConnection: () => socket,
      maxHeaderSize: HEADER_BYTES_MAX,
      setHost: false,
    });
    sent.on("response", (response) => {
      answer.writeHead(response.statusCode ?? 502, plainHeaders(response.rawHeaders));
      pipeline(response, answer, () => socket.destroy());
    });
    sent.on("error", () => answer.destroy());
    answer.once("close", () => socket.destroy());
    pipeline(asked, sent, () => undefined);
  } catch {
    // An answer of ours would look like one of the site's.
    answer.destroy();
  }
}

/** Names and values alternate. Without the host, which is set from the URL that was checked. */
function plainHeaders(raw: readonly string[]): string[] {
  const kept: string[] = [];
  for (let at = 0; at + 1 < raw.length; at += 2) {
    const [name = "", value = ""] = raw.slice(at, at + 2);
    const lowerCase = name.toLowerCase();
    if (!PROXY_HEADERS.test(lowerCase) && lowerCase !== "host") kept.push(name, value);
  }
  return kept;
}

async function connect(connectTo: ConnectTo, url: URL): Promise<Socket> {
  // A tunnel carries whatever the program sends: the socket itself is plain, and the port explicit.
  const port = url.port || (url.protocol === "https:" ? "443" : "80");
  const origin = new URL(`http://${url.hostname}:${port}`);
  return await new Promise<Socket>((resolve, reject) => {
    connectTo(origin)(
      { hostname: bareHost(url.hostname), host: origin.host, protocol: "http:", port },
      // With an error, undici gives no second argument, whatever its types say.
      (error, socket) => (error === null ? resolve(must(socket, "the socket")) : reject(error)),
    );
  });
}
