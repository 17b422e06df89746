import type { Server } from "node:http";
import type { Socket } from "node:net";
import { networkOf } from "#domain/client-address.ts";
import { assert } from "#lib/assert.ts";

export interface ConnectionLimits {
  /** Of one client. */
  readonly perClientMax: number;
  /** Of all, from which on idle ones are closed sooner. */
  readonly many: number;
  readonly allMax: number;
  readonly keepAliveMs: number;
  readonly keepAliveOfManyMs: number;
  /** Whose connections are those of many clients, and are not counted by address. */
  readonly isNeighbour: (peer: string) => boolean;
}

/**
 * Finding M10: connections of one client can't take the places of all. What is too many is reset before HTTP knows of it; an IPv6 client
 * is its /64.
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
