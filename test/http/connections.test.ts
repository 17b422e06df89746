// Finding M10: one client's connections can't take the places of all.
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import { connect, type AddressInfo, type Socket } from "node:net";
import { networkInterfaces } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";
import { test } from "node:test";
import { limitConnections, type ConnectionLimits } from "#api/limit-connections.ts";
import { isNeighbour } from "#domain/client-address.ts";

const LIMITS: ConnectionLimits = {
  perClientMax: 5,
  many: 8,
  allMax: 100,
  keepAliveMs: 30_000,
  keepAliveOfManyMs: 2_000,
  isNeighbour: () => false,
};

async function serve(changes: Partial<ConnectionLimits> = {}, host = "127.0.0.1") {
  const server = createServer((_request, response) => response.end("ok"));
  limitConnections(server, { ...LIMITS, ...changes });
  server.listen(0, host);
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const sockets = new Set<Socket>();
  return {
    server,
    /** The head of the answer to one request, or why there is none. The connection stays open. */
    ask: async (
      client: string,
      to = "127.0.0.1",
    ): Promise<{ readonly answer: string; readonly socket: Socket }> => {
      const socket = connect({ port, host: to, localAddress: client });
      sockets.add(socket);
      const answer = await new Promise<string>((resolve) => {
        socket.once("data", (data) => resolve(data.toString("latin1")));
        socket.once("error", ({ message }) => resolve(message));
        socket.once("close", () => resolve("closed"));
        socket.write("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
      });
      return { answer, socket };
    },
    [Symbol.asyncDispose]: async () => {
      for (const socket of sockets) socket.destroy();
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

const isServed = ({ answer }: { readonly answer: string }): boolean => answer.startsWith("HTTP/1.1 200 ");

test("a client has so many connections and no more; others have theirs, and a place is free again", async () => {
  await using server = await serve();
  const first = await server.ask("127.8.0.1");
  for (let opened = 1; opened < LIMITS.perClientMax; opened++)
    assert.ok(isServed(await server.ask("127.8.0.1")));
  const refused = await server.ask("127.8.0.1");
  assert.ok(!isServed(refused) && !refused.answer.includes("HTTP"), refused.answer);
  assert.ok(isServed(await server.ask("127.8.0.2")));
  first.socket.destroy();
  // Until the server has seen the end.
  let again = await server.ask("127.8.0.1");
  for (let tries = 0; tries < 100 && !isServed(again); tries++) {
    await sleep(10);
    again = await server.ask("127.8.0.1");
  }
  assert.ok(isServed(again));
});

test("this machine and trusted proxies have as many as all", async () => {
  await using server = await serve({ isNeighbour: (peer) => isNeighbour(peer, []) });
  for (let opened = 0; opened < LIMITS.perClientMax * 2; opened++)
    assert.ok(isServed(await server.ask("127.8.0.1")));
});

test("when there are many, idle ones are kept for a shorter time", async () => {
  await using server = await serve();
  const alone = await server.ask("127.8.1.1");
  assert.match(alone.answer, /Keep-Alive: timeout=30/i);
  for (let opened = 2; opened < LIMITS.many; opened++)
    assert.ok(isServed(await server.ask(`127.8.1.${opened}`)));
  const among = await server.ask("127.8.1.99");
  assert.match(among.answer, /Keep-Alive: timeout=2/i);
});

/** An address of this machine that is not loopback: what a stranger's connection looks like. */
const outward = Object.values(networkInterfaces())
  .flat()
  .find((entry) => entry !== undefined && !entry.internal && entry.family === "IPv4")?.address;

test(
  "an address that is neither is counted, IPv4 inside IPv6 as well",
  { skip: outward === undefined },
  async () => {
    const to = outward ?? "";
    await using server = await serve({ isNeighbour: (peer) => isNeighbour(peer, []) }, "::");
    for (let opened = 0; opened < LIMITS.perClientMax; opened++)
      assert.ok(isServed(await server.ask(to, to)));
    assert.ok(!isServed(await server.ask(to, to)));
    assert.ok(isServed(await server.ask("127.8.0.3")), "while others are served");
  },
);
