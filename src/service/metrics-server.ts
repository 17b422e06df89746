import { once } from "node:events";
import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { promisify } from "node:util";
import type { ReadMetrics } from "#actions/upkeep/read-metrics.ts";

const REQUEST_MS = 10_000;
const METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8";

async function answerMetrics(
  read: ReadMetrics,
  { method, url = "" }: IncomingMessage,
): Promise<readonly [status: number, text: string]> {
  if (method !== "GET" || url.split("?", 1)[0] !== "/metrics") return [404, "Not found.\n"];
  return await read().then(
    (text) => [200, text] as const,
    () => [500, "The metrics can't be read.\n"] as const,
  );
}

/**
 * A port of its own, so that it can be reached from inside only: the metrics tell how much the installation is used. Not the framework's: beside
 * a second instance of it, every request of the first one costs some percent more, as its code then sees two kinds of objects.
 */
export async function openMetricsServer(
  read: ReadMetrics,
  { host, port }: { readonly host: string; readonly port: number },
): Promise<{ readonly url: string; close(): Promise<void> }> {
  const server = createServer({ requestTimeout: REQUEST_MS }, (request, response) => {
    void answerMetrics(read, request).then(([status, text]) => {
      response.writeHead(status, { "Cache-Control": "no-store", "Content-Type": METRICS_TYPE });
      response.end(text);
    });
  });
  server.listen({ host, port });
  await once(server, "listening");
  const { address, family, port: at } = server.address() as AddressInfo;
  return {
    url: `http://${family === "IPv6" ? `[${address}]` : address}:${at}`,
    close: async () => {
      server.closeAllConnections();
      await promisify(server.close.bind(server))();
    },
  };
}
