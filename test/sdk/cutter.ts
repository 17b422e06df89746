import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

/** In front of a service: forwards each request, and loses the answers that `cut` picks, once they have been given. */
export async function openCutter(
  serviceUrl: string,
  cut: (request: IncomingMessage) => boolean,
): Promise<{ readonly url: string } & AsyncDisposable> {
  const forward = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const { host: _host, connection: _connection, "content-length": _length, ...headers } = request.headers;
    const answer = await fetch(new URL(request.url ?? "", serviceUrl), {
      method: request.method ?? "GET",
      headers: headers as Record<string, string>,
      ...(chunks.length > 0 && { body: Buffer.concat(chunks) }),
    });
    const bytes = Buffer.from(await answer.arrayBuffer());
    if (cut(request)) return void response.destroy();
    response.writeHead(answer.status, Object.fromEntries(answer.headers)).end(bytes);
  };
  const server = createServer((request, response) => void forward(request, response));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
