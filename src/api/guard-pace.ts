import type { IncomingMessage, Server } from "node:http";

/** The minimum pace of a body: a slow one occupies a connection and an incomplete file. */
export interface Pace {
  /** The minimum time. */
  readonly graceMs: number;
  /** Each received byte extends the time, so a body that arrives at this pace is never rejected. */
  readonly bytesPerSecondMin: number;
  readonly lookEveryMs: number;
}

interface Body {
  readonly bytesBefore: number;
  /** The time spent waiting for the caller. Time in which the service did not read is not counted. */
  waitedMs: number;
}

/**
 * Ends requests whose body is slower than the pace, as Node.js's own time limit does: with a 408 in the error envelope. docs/decisions/0028.
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
      const error = Object.assign(new Error("The body arrived too slowly."), {
        code: "ERR_HTTP_REQUEST_TIMEOUT",
      });
      server.emit("clientError", error, request.socket);
    }
  }, pace.lookEveryMs);
  look.unref();
  server.once("close", () => clearInterval(look));
}
