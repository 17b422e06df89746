import type { IncomingMessage, Server } from "node:http";

/** How slowly a body may come: what it costs us to keep it open is a connection, and a file that is half written. */
export interface Pace {
  /** Waited for in any case. */
  readonly graceMs: number;
  /** Each byte that has come allows for more time: at this pace a body never ends too early. */
  readonly bytesPerSecondMin: number;
  readonly lookEveryMs: number;
}

interface Body {
  readonly bytesBefore: number;
  /** How long it was the caller's turn. What we are slow to take is no fault of the caller's. */
  waitedMs: number;
}

/**
 * Ends requests whose body comes slower than the pace, as node's own time limit does: with a 408 in our envelope. docs/decisions/0028.
 */
export function guardPace(server: Server, pace: Pace): void {
  const bodies = new Map<IncomingMessage, Body>();
  server.prependListener("request", (request: IncomingMessage) => {
    const { "content-length": length = "0", "transfer-encoding": encoding } = request.headers;
    if (request.complete || (length === "0" && encoding === undefined)) return;
    bodies.set(request, { bytesBefore: request.socket.bytesRead, waitedMs: 0 });
    request.once("close", () => bodies.delete(request));
  });
  const look = setInterval(() => {
    for (const [request, body] of bodies) {
      if (request.complete || request.destroyed) {
        bodies.delete(request);
        continue;
      }
      if (request.readableLength >= request.readableHighWaterMark) continue;
      body.waitedMs += pace.lookEveryMs;
      const bytes = request.socket.bytesRead - body.bytesBefore;
      if (body.waitedMs <= pace.graceMs + (bytes / pace.bytesPerSecondMin) * 1_000) continue;
      bodies.delete(request);
      const error = Object.assign(new Error("The body came too slowly."), {
        code: "ERR_HTTP_REQUEST_TIMEOUT",
      });
      server.emit("clientError", error, request.socket);
    }
  }, pace.lookEveryMs);
  look.unref();
  server.once("close", () => clearInterval(look));
}
