import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createServer as createTlsServer } from "node:https";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { test } from "node:test";
import { getCACertificates, setDefaultCACertificates } from "node:tls";
import { assertFails, CANARY, openTestGate, policyFor, send, startTarget, startTcp } from "./targets.ts";

const loopback = { allow: ["127.0.0.0/8", "::1/128"] };

test("a request arrives as it was given, and its response comes back whole", async (context) => {
  const target = await startTarget(context, (_seen, response) => {
    response.writeHead(201, [
      ["X-Twice", "a"],
      ["X-Twice", "b"],
      ["Content-Type", "text/plain; charset=iso-8859-1"],
      ["Set-Cookie", "a=1"],
    ]);
    response.end(Buffer.from([0x67, 0xfc, 0x6e]));
  });
  const gate = openTestGate(context, loopback);
  const response = await send(gate, `${target.origin}/path?q=%20a`, policyFor([target.origin]), {
    method: "POST",
    headers: [
      ["X-Own", "1"],
      ["Content-Type", "text/plain"],
    ],
    body: "zoë",
  });
  assert.equal(response.status, 201);
  assert.equal(response.url, `${target.origin}/path?q=%20a`);
  assert.equal(response.headers.get("x-twice"), "a, b");
  assert.equal(response.headers.has("set-cookie"), false);
  assert.equal(response.text(), "gün");
  const [seen] = target.seen;
  assert.equal(`${seen?.method} ${seen?.url} ${seen?.body}`, "POST /path?q=%20a zoë");
  assert.equal(seen?.headers["x-own"], "1");
  assert.equal(seen?.headers.host, new URL(target.origin).host);
});

test("a body that can't be read, or an answer that can't be kept, is no failure of the target", async (context) => {
  const target = await startTarget(context, (_seen, response) => response.end("an answer"));
  const gate = openTestGate(context, loopback);
  const failure = Object.assign(new Error("the object store can't be reached"), { code: "ECONNREFUSED" });
  const open = async function* (): AsyncIterable<Uint8Array> {
    yield Buffer.from("abc");
    throw failure;
  };
  const policy = policyFor([target.origin]);
  await assert.rejects(
    send(gate, `${target.origin}/`, policy, { method: "POST", body: { sizeBytes: 6, open } }),
    failure,
  );
  const keep = async (): Promise<never> => {
    throw failure;
  };
  await assert.rejects(send(gate, `${target.origin}/`, { ...policy, keep }), failure);
});

test("only the policy's exact origins are reached: another port, scheme, host or a user name is refused without a connection", async (context) => {
  const trap = await startTcp(context);
  const gate = openTestGate(context, loopback);
  const policy = policyFor([
    "http://127.0.0.1:1",
    `https://127.0.0.1:${trap.port}`,
    `http://localhost:${trap.port}`,
  ]);
  for (const url of [
    `http://127.0.0.1:${trap.port}/${CANARY}?${CANARY}`,
    `http://127.0.0.2:${trap.port}/`,
    `http://user:${CANARY}@localhost:${trap.port}/`,
    `http://user@localhost:${trap.port}/`,
  ]) {
    await assertFails(send(gate, url, policy), "refused");
  }
  await assertFails(send(gate, "file:///etc/passwd", policy), "refused");
  await assertFails(
    send(gate, `blob:http://localhost:${trap.port}/1`, policy),
    "refused",
    /only http and https/,
  );
  assert.equal(trap.connections, 0);
});

test("a connection that one policy opened does not let another policy in", async (context) => {
  const target = await startTarget(context, (_seen, response) => response.end("ok"));
  const gate = openTestGate(context, loopback);
  assert.equal((await send(gate, target.origin, policyFor([target.origin]))).status, 200);
  await assertFails(
    send(gate, target.origin, policyFor(["http://other.example"])),
    "refused",
    /not one of the allowed hosts/,
  );
  const strict = openTestGate(context, { allow: [] });
  await assertFails(
    send(strict, target.origin, policyFor([target.origin])),
    "refused",
    /not public \(loopback\)/,
  );
  assert.equal(target.seen.length, 1);
});

test("localhost and host:port pairs of the operator are reached", async (context) => {
  const target = await startTarget(context, (_seen, response) => response.end("ok"));
  const gate = openTestGate(context, { allow: [`localhost:${target.port}`] });
  const origin = `http://localhost:${target.port}`;
  assert.equal((await send(gate, origin, policyFor([origin]))).text(), "ok");
  await assertFails(send(gate, target.origin, policyFor([target.origin])), "refused");
});

test("connections are kept alive and used again", async (context) => {
  const target = await startTarget(context, (_seen, response) => response.end("ok"));
  const gate = openTestGate(context, loopback);
  for (let count = 0; count < 20; count++) await send(gate, target.origin, policyFor([target.origin]));
  assert.equal(target.seen.length, 20);
  assert.ok(target.connections <= 3, `${target.connections} connections for 20 requests one after the other`);
});

test("headers that belong to the connection, malformed ones and dangerous methods are refused before anything is sent", async (context) => {
  const target = await startTarget(context, (_seen, response) => response.end("ok"));
  const gate = openTestGate(context, loopback);
  const policy = policyFor([target.origin]);
  const names = [
    "Host",
    "content-length",
    "Transfer-Encoding",
    "connection",
    "upgrade",
    "expect",
    "te",
    "trailer",
    "keep-alive",
    "proxy-connection",
  ];
  for (const name of names)
    await assertFails(send(gate, target.origin, policy, { headers: [[name, CANARY]] }), "refused");
  for (const value of [`${CANARY}\r\nx-evil: 1`, `${CANARY}\u0000`, `${CANARY}€`]) {
    await assertFails(send(gate, target.origin, policy, { headers: [["x-own", value]] }), "refused");
    await assertFails(
      send(gate, target.origin, { ...policy, prepareHop: () => [["authorization", value]] }),
      "refused",
    );
  }
  await assertFails(send(gate, target.origin, policy, { headers: [[`x ${CANARY}`, "1"]] }), "refused");
  for (const method of ["CONNECT", "TRACE", "TRACK", "GET /", "get", ""])
    await assertFails(send(gate, target.origin, policy, { method }), "refused");
  assert.equal(target.seen.length, 0);
});

test("headers of a hop win over the request's own, and cookies of both are sent", async (context) => {
  const target = await startTarget(context, (_seen, response) => response.end("ok"));
  const gate = openTestGate(context, loopback);
  const prepareHop = () =>
    [
      ["authorization", "Bearer session"],
      ["cookie", "b=2"],
    ] as const;
  await send(gate, target.origin, policyFor([target.origin], { prepareHop }), {
    headers: [
      ["Authorization", "own"],
      ["Cookie", "a=1"],
    ],
  });
  assert.equal(target.seen[0]?.headers.authorization, "Bearer session");
  assert.equal(target.seen[0]?.headers.cookie, "a=1; b=2");
});

test("a certificate is checked against the name, which is sent as SNI although a checked address is dialled", async (context) => {
  const folder = join(import.meta.dirname, "certificate");
  const cert = readFileSync(join(folder, "portal.test.pem"), "utf8");
  const names: unknown[] = [];
  const server = createTlsServer(
    { cert, key: readFileSync(join(folder, "portal.test.key.pem"), "utf8") },
    (_request, response) => response.end("tls"),
  );
  server.on("secureConnection", (socket) => names.push(socket.servername));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  context.after(() => new Promise((resolve) => server.close(resolve)));
  const { port } = server.address() as AddressInfo;
  const gate = openTestGate(context, {
    allow: [`portal.test:${port}`, `other.test:${port}`],
    resolve: () => Promise.resolve(["127.0.0.1"]),
  });
  const [right, wrong] = [`https://portal.test:${port}`, `https://other.test:${port}`];

  await assertFails(send(gate, right, policyFor([right])), "connection", /DEPTH_ZERO_SELF_SIGNED_CERT/);
  const before = getCACertificates("default");
  setDefaultCACertificates([...before, cert]);
  context.after(() => setDefaultCACertificates(before));
  assert.equal((await send(gate, right, policyFor([right]))).text(), "tls");
  await assertFails(send(gate, wrong, policyFor([wrong])), "connection", /ERR_TLS_CERT_ALTNAME_INVALID/);
  assert.ok(names.includes("portal.test"));
});

test("the deadline covers the silence before the headers, a body that drips, and redirects that go on", async (context) => {
  const silent = await startTarget(context, () => undefined);
  const dripping = await startTarget(context, (_seen, response) => {
    const timer = setInterval(() => response.write("x"), 20);
    response.on("close", () => clearInterval(timer));
  });
  const hopping = await startTarget(
    context,
    (_seen, response) => void setTimeout(() => response.writeHead(302, { location: "/next" }).end(), 60),
  );
  const gate = openTestGate(context, loopback);
  for (const { origin } of [silent, dripping, hopping]) {
    // The first two never end by themselves, and the third fails of its redirects.
    const policy = policyFor([origin], { timeoutMs: 200, redirectsMax: 100 });
    await assertFails(
      send(gate, `${origin}/${CANARY}`, policy, { headers: [["x-key", CANARY]] }),
      "timeout",
      /within 200 ms/,
    );
  }
});

test("the deadline covers the look-up of a name, and a request that waited for it is never sent", async (context) => {
  const target = await startTarget(context, (_seen, response) => response.end());
  const origin = `http://portal.test:${target.port}`;
  const [found, left] = [Promise.withResolvers<readonly string[]>(), { count: 0 }];
  const gate = openTestGate(context, { ...loopback, resolve: async () => await found.promise });
  const mayLeave = (): void => void left.count++;
  const policy = { ...policyFor([origin], { timeoutMs: 100 }), mayLeave };
  await assertFails(send(gate, origin, policy), "timeout", /within 100 ms/);
  found.resolve(["127.0.0.1"]);
  assert.equal((await send(gate, origin, policyFor([origin]))).status, 200);
  assert.deepEqual([target.seen.length, left.count], [1, 0]);
});

test("an abort ends the exchange at once and closes the connection, before the headers and in the body", async (context) => {
  for (const isInBody of [false, true]) {
    const closed = Promise.withResolvers<void>();
    const arrived = Promise.withResolvers<void>();
    const target = await startTarget(context, (_seen, response) => {
      response.on("close", () => closed.resolve());
      if (isInBody) response.write("begun");
      arrived.resolve();
    });
    const gate = openTestGate(context, loopback);
    const controller = new AbortController();
    const exchange = assertFails(
      send(gate, target.origin, policyFor([target.origin]), {}, controller.signal),
      "cancelled",
    );
    await arrived.promise;
    controller.abort(new Error(CANARY));
    await exchange;
    await closed.promise;
  }
  const gate = openTestGate(context, loopback);
  const trap = await startTcp(context);
  await assertFails(
    send(
      gate,
      `http://127.0.0.1:${trap.port}`,
      policyFor([`http://127.0.0.1:${trap.port}`]),
      {},
      AbortSignal.abort(),
    ),
    "cancelled",
  );
  assert.equal(trap.connections, 0);
});

test("a failed connection, a broken one and nonsense say the host and no more", async (context) => {
  const gate = openTestGate(context, loopback);
  const more = {
    method: "POST",
    headers: [["authorization", `Bearer ${CANARY}`]] as const,
    body: `password=${CANARY}`,
  };
  const nonsense = await startTcp(context, (socket) => void socket.end(`nonsense ${CANARY}\r\n\r\n`));
  const cut = await startTcp(
    context,
    (socket) =>
      void socket.once("data", () => socket.end(`HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n${CANARY}`)),
  );
  const closed = await startTcp(context);
  const refusing = await startTcp(context);
  for (const { port } of [nonsense, cut, closed]) {
    const origin = `http://127.0.0.1:${port}`;
    await assertFails(
      send(gate, `${origin}/${CANARY}?${CANARY}`, policyFor([origin]), more),
      "connection",
      /the connection to 127\.0\.0\.1:\d+ failed/,
    );
  }
  // Nobody listens on 127.0.0.3.
  const origin = `http://127.0.0.3:${refusing.port}`;
  await assertFails(send(gate, origin, policyFor([origin]), more), "unreachable", /ECONNREFUSED/);
});

test("a closed gate cuts what is open and takes nothing more", async (context) => {
  const arrived = Promise.withResolvers<void>();
  const target = await startTarget(context, () => arrived.resolve());
  const gate = openTestGate(context, loopback);
  const exchange = assertFails(
    send(gate, target.origin, policyFor([target.origin])),
    "cancelled",
    /service is stopping/,
  );
  await arrived.promise;
  await gate.close();
  await exchange;
  await assertFails(send(gate, target.origin, policyFor([target.origin])), "cancelled");
});
