/**
 * The limit of HTTP: a `node:http` server in a process of its own that answers a constant. Given SQL, it does that for each request
 * before it answers: the least that a service in front of a database can cost. Sends its port.
 */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { openSql, type SqlWork } from "./sql-rows.ts";

export interface BareAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  readonly sql?: SqlWork | undefined;
}

process.once("message", ({ status, headers, body, sql }: BareAnswer) => {
  const work = sql && openSql(sql);
  const server = createServer((request, response) => {
    request.resume();
    const answer = (): void => {
      response.writeHead(status, headers);
      response.end(body);
    };
    if (work === undefined) answer();
    else void work.call().then(answer, (error: unknown) => request.destroy(error as Error));
  });
  server.listen(0, "127.0.0.1", () => process.send?.((server.address() as AddressInfo).port));
});
