import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { createServer as createTlsServer } from "node:https";
import { createSecureServer } from "node:http2";
import type { AddressInfo, Server } from "node:net";
import { join } from "node:path";
import { test, type TestContext } from "node:test";
import type { TLSSocket } from "node:tls";
import { getCACertificates, setDefaultCACertificates } from "node:tls";
import { assertFails, openTestGate, policyFor, send, startTarget, startTcp } from "./targets.ts";

const certificate = (name: string): string =>
  readFileSync(join(import.meta.dirname, "certificate", name), "utf8");
const tls = { key: certificate("portal.test.key.pem"), cert: certificate("portal.test.pem") };

async function listen(context: TestContext, server: Server): Promise<number> {
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  context.after(() => server.close());
  return (server.address() as AddressInfo).port;
}

/** What the gate and `fetch` get in a process with these surroundings. */
async function inProcess(
  url: string,
  allow: string,
  environment: Readonly<Record<string, string>>,
): Promise<{ readonly byGate: string; readonly byFetch: string }> {
  const script = join(import.meta.dirname, "gate-process.ts");
  const output = await new Promise<string>((resolve, reject) => {
    execFile(
      process.execPath,
      ["--disable-warning=ExperimentalWarning", script, url, allow],
      { env: { ...process.env, ...environment } },
      (error, stdout) => (error === null ? resolve(stdout) : reject(error)),
    );
  });
  return JSON.parse(output) as { byGate: string; byFetch: string };
}

test("proxies that the environment names are not used", async (context) => {
  const proxy = await startTcp(context);
  const target = await startTarget(context, (_seen, response) => response.end("target"));
  const address = `http://127.0.0.1:${proxy.port}`;
  const names = ["http_proxy", "https_proxy", "all_proxy", "ftp_proxy", "npm_config_proxy"];
  const proxies = Object.fromEntries(
    names.flatMap((name) => [
      [name, address],
      [name.toUpperCase(), address],
    ]),
  );
  const got = await inProcess(target.origin, "127.0.0.0/8", {
    ...proxies,
    NODE_USE_ENV_PROXY: "1",
    NO_PROXY: "",
    no_proxy: "",
  });
  assert.deepEqual(got, { byGate: "target", byFetch: "failed" });
  assert.ok(proxy.connections > 0, "the control: fetch went to the proxy");
  assert.equal(target.seen.length, 1);
});

test("certificates are checked, whatever the environment says", async (context) => {
  const server = createTlsServer(tls, (_request, response) => response.end("not who it says"));
  const port = await listen(context, server);
  const url = `https://127.0.0.1:${port}/`;
  const got = await inProcess(url, "127.0.0.0/8", { NODE_TLS_REJECT_UNAUTHORIZED: "0" });
  assert.equal(got.byFetch, "not who it says", "the control: fetch takes any certificate then");
  assert.match(
    got.byGate,
    /GateError: the connection to 127\.0\.0\.1:\d+ failed \((\w*CERT\w*|ERR_TLS\w*)\)/,
  );
});

test("a target's Alt-Svc, Refresh and Link headers lead nowhere", async (context) => {
  const trap = await startTcp(context);
  const target = await startTarget(context, (_seen, response) => {
    const there = `http://127.0.0.1:${trap.port}/`;
    response
      .writeHead(200, {
        "alt-svc": `h2="127.0.0.1:${trap.port}"; ma=86400, h3=":${trap.port}", http/1.1="127.0.0.1:${trap.port}"`,
        "alternate-protocol": `${trap.port}:http`,
        refresh: `0; url=${there}`,
        link: `<${there}>; rel=preconnect, <${there}>; rel=preload; as=fetch`,
        "content-location": there,
        location: there,
        connection: "close",
      })
      .end(`<meta http-equiv="refresh" content="0; url=${there}">`);
  });
  const gate = openTestGate(context, { allow: ["127.0.0.0/8"] });
  for (let count = 0; count < 10; count++)
    assert.equal((await send(gate, target.origin, policyFor([target.origin]))).status, 200);
  assert.equal(target.seen.length, 10);
  assert.equal(trap.connections, 0);
});

test("a status that is no redirect is not followed, whatever its Location says", async (context) => {
  const trap = await startTcp(context);
  const target = await startTarget(context, (seen, response) =>
    response.writeHead(Number(seen.url.slice(1)), { location: `http://127.0.0.1:${trap.port}/` }).end(),
  );
  const gate = openTestGate(context, { allow: ["127.0.0.0/8"] });
  const policy = policyFor([target.origin, `http://127.0.0.1:${trap.port}`]);
  for (const status of [200, 201, 202, 300, 304, 305, 306, 309, 401, 407, 503])
    assert.equal((await send(gate, `${target.origin}/${status}`, policy)).status, status);
  assert.equal(trap.connections, 0);
});

test("HTTP/2 is not spoken, neither by negotiation nor by upgrade", async (context) => {
  const before = getCACertificates("default");
  context.after(() => setDefaultCACertificates(before));
  setDefaultCACertificates([...before, tls.cert]);
  const protocols: unknown[] = [];
  const server = createSecureServer({ ...tls, allowHTTP1: true }, (request, response) => {
    protocols.push((request.socket as TLSSocket).alpnProtocol);
    response.end(request.httpVersion);
  });
  const port = await listen(context, server);
  const gate = openTestGate(context, {
    allow: ["127.0.0.0/8"],
    resolve: () => Promise.resolve(["127.0.0.1"]),
  });
  const origin = `https://portal.test:${port}`;
  assert.equal((await send(gate, origin, policyFor([origin]))).text(), "1.1");
  assert.deepEqual(protocols, ["http/1.1"]);
  const upgrading = await startTcp(
    context,
    (socket) =>
      void socket.once("data", () =>
        socket.write("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n"),
      ),
  );
  const plain = `http://127.0.0.1:${upgrading.port}`;
  await assertFails(send(gate, plain, policyFor([plain])), "connection");
});
