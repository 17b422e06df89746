import { createHmac } from "node:crypto";
import { createServer, type IncomingHttpHeaders } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";

/** A delivery as an endpoint received it. */
export interface Received {
  readonly path: string;
  readonly id: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
  /** The parsed body. */
  readonly event: { readonly type: string; readonly timestamp: string; readonly data: any };
}

export interface Answer {
  readonly status: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
  /** How long it takes; default: none. */
  readonly afterMs?: number;
}

/** A customer's server on loopback. */
export interface Receiver {
  readonly url: string;
  readonly received: readonly Received[];
  /** Of one path, in the order in which they came in. */
  at(path: string): readonly Received[];
  readonly connections: number;
  close(): Promise<void>;
}

/** `answer` decides by the delivery; null: there is no answer at all. */
export async function startReceiver(
  answer: (delivery: Received) => Answer | null = () => ({ status: 204 }),
): Promise<Receiver> {
  const received: Received[] = [];
  let connections = 0;
  const server = createServer((request, response) => {
    void text(request).then((body) => {
      const { headers, url: path = "/" } = request;
      const delivery = { path, id: String(headers["webhook-id"]), headers, body, event: JSON.parse(body) };
      received.push(delivery);
      const given = answer(delivery);
      if (given === null) return;
      const reply = (): void => void response.writeHead(given.status, given.headers).end(given.body);
      if (given.afterMs) setTimeout(reply, given.afterMs).unref();
      else reply();
    });
  });
  server.on("connection", () => connections++);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    received,
    at: (path) => received.filter((delivery) => delivery.path === path),
    get connections() {
      return connections;
    },
    close: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** Whether one of the signatures is by this secret: the check of the specification, written anew. */
export function isSignedBy(secret: string, { headers, body }: Received): boolean {
  const key = Buffer.from(secret.replace("whsec_", ""), "base64");
  const content = `${String(headers["webhook-id"])}.${String(headers["webhook-timestamp"])}.${body}`;
  const wanted = `v1,${createHmac("sha256", key).update(content).digest("base64")}`;
  return String(headers["webhook-signature"]).split(" ").includes(wanted);
}
