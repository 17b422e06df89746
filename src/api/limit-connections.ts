import type { Server } from "node:http";
import type { Socket } from "node:net";
import { networkOf } from "#domain/client-address.ts";
import { assert } from "#lib/assert.ts";

export interface ConnectionLimits {
  /** Connections per client. */
  readonly perClientMax: number;
  /** The total from which idle ones are closed sooner. */
  readonly many: number;
  readonly allMax: number;
  readonly keepAliveMs: number;
  readonly keepAliveOfManyMs: number;
  /** Proxies, whose connections serve many clients and are not counted by address. */
  readonly isNeighbour: (peer: string) => boolean;
}

/**
 * Finding M10: one client can't occupy all connections. Connections beyond the limit are reset before HTTP parsing; an IPv6 client
 * is counted by its /64 network.
 */
export function limitConnections(server: Server, limits: ConnectionLimits): void {
  const [serve, ...others] = server.listeners("connection") as ((this: Server, socket: Socket) => void)[];
  assert(serve !== undefined && others.length === 0, "HTTP alone listens for connections");
  const byClient = new Map<string, number>();
  let all = 0;
  const count = (client: string | null, change: 1 | -1): void => {
    all += change;
    server.keepAliveTimeout = all >= limits.many ? limits.keepAliveOfManyMs : limits.keepAliveMs;
    if (client === null) return;
    const now = (byClient.get(client) ?? 0) + change;
    if (now === 0) byClient.delete(client);
    else byClient.set(client, now);
  };
  server.maxConnections = limits.allMax;
  server.removeListener("connection", serve);
  server.on("connection", (socket: Socket) => {
    const peer = socket.remoteAddress ?? "";
    const client = limits.isNeighbour(peer) ? null : networkOf(peer);
    if (client !== null && (byClient.get(client) ?? 0) >= limits.perClientMax)
      return void socket.resetAndDestroy();
    count(client, 1);
    socket.once("close", () => count(client, -1));
    serve.call(server, socket);
  });
}
