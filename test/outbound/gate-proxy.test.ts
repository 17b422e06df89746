// The gate as a proxy: for programs with connections of their own, by the same rules.
import assert from "node:assert/strict";
import { request, type IncomingMessage } from "node:http";
import { connect, type Socket } from "node:net";
import { test, type TestContext } from "node:test";
import { GateError } from "#outbound/gate-error.ts";
import type { GateProxy, ProxyPolicy } from "#outbound/gate-proxy.ts";
import { openTestGate, startTarget } from "./targets.ts";
import type { GateOptions } from "#outbound/gate.ts";

async function openProxy(
  context: TestContext,
  options: GateOptions,
  policy: Partial<ProxyPolicy> = {},
): Promise<{ readonly proxy: GateProxy; readonly refused: string[]; readonly admitted: string[] }> {
  const refused: string[] = [];
  const admitted: string[] = [];
  const proxy = await openTestGate(context, options).openProxy({
    admit: async (url, isTunnel) => void admitted.push(`${isTunnel ? "tunnel" : "plain"} ${url.origin}`),
    refused: (url) => void refused.push(url.origin),
    ...policy,
  });
  context.after(async () => await proxy.close());
  return { proxy, refused, admitted };
}

const basic = ({ username, password }: Pick<GateProxy, "username" | "password">): string =>
  `Basic ${Buffer.from(`${username}:${password}`).toString("base64")}`;

/** The status, or `nothing` if the connection was closed without an answer. */
async function ask(proxy: GateProxy, url: string, given: string = basic(proxy)): Promise<string> {
  return await new Promise((resolve) => {
    const { hostname, port } = new URL(proxy.server);
    request(
      {
        hostname,
        port,
        path: url,
        headers: {
          host: "other.example",
          "proxy-authorization": given,
          "proxy-connection": "keep-alive",
          "x-own": "1",
        },
        agent: false,
      },
      (response: IncomingMessage) => {
        response.resume();
        resolve(String(response.statusCode));
      },
    )
      .on("error", () => resolve("nothing"))
      .end();
  });
}

/** The first line of the answer to CONNECT, and the socket. */
async function tunnel(
  proxy: GateProxy,
  target: string,
  given: string = basic(proxy),
): Promise<{ readonly line: string; readonly socket: Socket }> {
  const { hostname, port } = new URL(proxy.server);
  const socket = connect(Number(port), hostname);
  socket.on("error", () => undefined);
  socket.write(`CONNECT ${target} HTTP/1.1\r\nhost: ${target}\r\nproxy-authorization: ${given}\r\n\r\n`);
  const data = await new Promise<Buffer>((resolve) => socket.once("data", resolve));
  return { line: data.toString("latin1").split("\r\n")[0] ?? "", socket };
}

test("requests and tunnels get through with the credentials, and without the proxy's headers", async (t) => {
  const target = await startTarget(t, (_seen, response) => response.end("hello"));
  const { proxy, admitted } = await openProxy(t, { allow: ["127.0.0.0/8"] });
  assert.equal(await ask(proxy, `${target.origin}/path?q=1`), "200");
  const { line, socket } = await tunnel(proxy, `127.0.0.1:${target.port}`);
  assert.equal(line, "HTTP/1.1 200 Connected");
  socket.write(`GET /tunnelled HTTP/1.1\r\nhost: inside\r\nconnection: close\r\n\r\n`);
  await new Promise((resolve) => socket.once("close", resolve));
  assert.deepEqual(
    target.seen.map(({ url }) => url),
    ["/path?q=1", "/tunnelled"],
  );
  const { host, "x-own": own, ...rest } = target.seen[0]?.headers ?? {};
  assert.deepEqual([host, own], [`127.0.0.1:${target.port}`, "1"]);
  assert.deepEqual(
    Object.keys(rest).filter((name) => name.startsWith("proxy")),
    [],
  );
  assert.deepEqual(admitted, [`plain ${target.origin}`, `tunnel https://127.0.0.1:${target.port}`]);
});

test("without the credentials of this proxy nothing is reached", async (t) => {
  const target = await startTarget(t, (_seen, response) => response.end());
  const { proxy, admitted } = await openProxy(t, { allow: ["127.0.0.0/8"] });
  const { proxy: other } = await openProxy(t, { allow: ["127.0.0.0/8"] });
  for (const given of ["", "Basic", basic(other), basic({ ...proxy, password: "" }), `${basic(proxy)}x`]) {
    assert.equal(await ask(proxy, target.origin, given), "407");
    assert.equal((await tunnel(proxy, `127.0.0.1:${target.port}`, given)).line.split(" ")[1], "407");
  }
  assert.deepEqual([target.connections, admitted], [0, []]);
});

test("what is not a URL of plain HTTP without credentials of its own is not forwarded", async (t) => {
  const target = await startTarget(t, (_seen, response) => response.end());
  const { proxy, admitted } = await openProxy(t, { allow: ["127.0.0.0/8"] });
  const host = `127.0.0.1:${target.port}`;
  for (const url of [
    `https://${host}/`,
    `ftp://${host}/`,
    `http://u:p@${host}/`,
    `http://u@${host}/`,
    "/path",
  ])
    assert.equal(await ask(proxy, url), "nothing", url);
  assert.deepEqual([target.connections, admitted], [0, []]);
});

test("addresses follow the gate's rules: every address of a name, each time, before a connection", async (t) => {
  const target = await startTarget(t, (_seen, response) => response.end());
  const answers = [["127.0.0.1"], ["192.0.2.1", "127.0.0.1"], ["::ffff:127.0.0.1"], ["169.254.169.254"]];
  let lookUps = 0;
  const resolve = async (): Promise<readonly string[]> => answers[lookUps++ % answers.length] ?? [];
  const { proxy, refused } = await openProxy(t, { allow: [], resolve });
  for (const _ of answers) assert.equal(await ask(proxy, `http://name.example:${target.port}/`), "nothing");
  for (const _ of answers)
    assert.equal((await tunnel(proxy, `name.example:${target.port}`)).line, "HTTP/1.1 403 Forbidden");
  for (const literal of ["127.0.0.1", "[::1]", "[::ffff:127.0.0.1]", "0.0.0.0", "2130706433", "0x7f.1"])
    assert.equal((await tunnel(proxy, `${literal}:${target.port}`)).line, "HTTP/1.1 403 Forbidden", literal);
  assert.equal(lookUps, 2 * answers.length, "one look-up for each connection, and none for a literal");
  assert.equal(refused.length, 2 * answers.length + 6);
  assert.equal(target.connections, 0);
});

test("what the policy refuses is not looked up, and odd targets are refused", async (t) => {
  let lookUps = 0;
  const resolve = async (): Promise<readonly string[]> => [`192.0.2.${++lookUps}`];
  const admit = async (): Promise<void> => {
    throw new GateError("refused", "not here");
  };
  const { proxy, refused } = await openProxy(t, { allow: [], resolve }, { admit });
  assert.equal(await ask(proxy, "http://name.example/"), "nothing");
  assert.equal((await tunnel(proxy, "name.example:443")).line, "HTTP/1.1 403 Forbidden");
  assert.deepEqual(refused, ["http://name.example", "https://name.example"]);
  for (const odd of ["user@name.example:443", "name.example:443/path", "name.example:x"])
    assert.match((await tunnel(proxy, odd)).line, / 400 /, odd);
  for (const odd of ["https://name.example/", "ftp://name.example/", "/path", "http://u:p@name.example/"])
    assert.equal(await ask(proxy, odd), "nothing", odd);
  assert.equal(lookUps, 0);
});

test("closing the proxy ends the tunnels that are open", async (t) => {
  const target = await startTarget(t, () => undefined);
  const { proxy } = await openProxy(t, { allow: ["127.0.0.0/8"] });
  const { socket } = await tunnel(proxy, `127.0.0.1:${target.port}`);
  const ended = new Promise((resolve) => socket.once("close", resolve));
  await proxy.close();
  await ended;
});
