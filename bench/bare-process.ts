/** The upper limit of HTTP: a `node:http` server in a process of its own that answers a constant. Sends its port. */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";

export interface BareAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

process.once("message", ({ status, headers, body }: BareAnswer) => {
  const server = createServer((request, response) => {
    request.resume();
    response.writeHead(status, headers);
    response.end(body);
  });
  server.listen(0, "127.0.0.1", () => process.send?.((server.address() as AddressInfo).port));
});
