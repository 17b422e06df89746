// docs/decisions/0028: a body comes at 10 kB a second at least, or its request ends with a 408 in our envelope.
import assert from "node:assert/strict";
import { createServer, type Server } from "node:http";
import { connect, type AddressInfo, type Socket } from "node:net";
import { text } from "node:stream/consumers";
import { setTimeout as sleep } from "node:timers/promises";
import { test, type TestContext } from "node:test";
import { guardConnections, refuseConnection } from "#api/guard-connections.ts";
import { guardPace } from "#api/guard-pace.ts";

const PACE = { graceMs: 300, bytesPerSecondMin: 1_000, lookEveryMs: 20 };

/** A server that answers with how many bytes came, when it has them all and has waited for as long as asked. */
async function open(t: TestContext): Promise<{ server: Server; send: (start: string) => Socket }> {
  const server = createServer((request, response) => {
    let bytes = 0;
    const begin = (): void => {
      request.on("data", (chunk: Buffer) => (bytes += chunk.length));
      request.on("end", () => response.end(`got ${bytes}`));
    };
    if (request.url === "/busy") setTimeout(begin, 1_500);
    else begin();
  });
  guardConnections(server);
  guardPace(server, PACE);
  server.on("clientError", refuseConnection);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  return {
    server,
    send: (start) => {
      const socket = connect((server.address() as AddressInfo).port, "127.0.0.1");
      socket.write(start);
      return socket;
    },
  };
}

const head = (path: string, length: number): string =>
  `POST ${path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: ${length}\r\n\r\n`;

for (const [name, start] of [
  ["that stops", `${head("/", 100_000)}some of it`],
  ["that never begins", head("/", 10)],
  ["in chunks that stops", "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n"],
] as const) {
  test(`a body ${name} is answered 408, with the envelope`, async (t) => {
    const { send } = await open(t);
    const answer = await text(send(start));
    assert.match(answer, /^HTTP\/1\.1 408 Request Timeout\r\n/);
    assert.deepEqual(JSON.parse(answer.split("\r\n\r\n")[1] ?? ""), {
      error: { type: "validation_error", message: "The request is malformed: request timeout." },
    });
  });
}

test("a body that drips is ended, though it never stops", async (t) => {
  const { send } = await open(t);
  const socket = send(head("/", 100_000));
  const drip = setInterval(() => socket.write("x"), 20);
  t.after(() => clearInterval(drip));
  socket.on("error", () => {});
  assert.match(await text(socket), /^HTTP\/1\.1 408 /);
});

test("a body that keeps its pace takes as long as it needs", async (t) => {
  const { send } = await open(t);
  const socket = send(head("/", 6_000));
  for (let part = 0; part < 6; part++) {
    socket.write(Buffer.alloc(1_000));
    await sleep(150);
  }
  assert.match(await text(socket), /got 6000$/);
});

test("what the service is slow to take is not the caller's fault", async (t) => {
  const { send } = await open(t);
  const socket = send(head("/busy", 200_000));
  socket.write(Buffer.alloc(200_000));
  assert.match(await text(socket), /got 200000$/);
});

test("requests without a body, and those that have come, are not watched", async (t) => {
  const { send } = await open(t);
  const socket = send("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
  let received = "";
  socket.on("data", (chunk) => (received += chunk.toString()));
  await sleep(700);
  // The connection is kept, and carries the next.
  socket.write("GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  await new Promise((resolve) => socket.once("close", resolve));
  assert.equal(received.split("HTTP/1.1 200 OK").length, 3);
});
