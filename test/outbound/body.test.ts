import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { test, type TestContext } from "node:test";
import {
  brotliCompressSync,
  createBrotliCompress,
  createGzip,
  deflateRawSync,
  deflateSync,
  gzipSync,
} from "node:zlib";
import { assertFails, openTestGate, policyFor, send, startTarget, startTcp } from "./targets.ts";

const loopback = { allow: ["127.0.0.0/8"] };
const text = "grüße ".repeat(2_000);

async function fetchEncoded(
  context: TestContext,
  encoding: string,
  body: Uint8Array,
  maxBytes = 1_000_000,
  status = 200,
) {
  const target = await startTarget(context, (_seen, response) =>
    response.writeHead(status, { "content-encoding": encoding }).end(body),
  );
  return send(openTestGate(context, loopback), target.origin, policyFor([target.origin], { maxBytes }));
}

test("gzip, deflate (zlib and raw) and br are decompressed", async (context) => {
  const bodies = {
    gzip: gzipSync(text),
    "x-gzip": gzipSync(text),
    br: brotliCompressSync(text),
    deflate: deflateSync(text),
    identity: Buffer.from(text),
  };
  for (const [encoding, body] of Object.entries(bodies))
    assert.equal((await fetchEncoded(context, encoding, body)).text(), text, encoding);
  assert.equal((await fetchEncoded(context, "Deflate", deflateRawSync(text))).text(), text);
});

test("an empty body with a content encoding is empty", async (context) => {
  for (const encoding of ["gzip", "br", "deflate"])
    assert.equal((await fetchEncoded(context, encoding, Buffer.alloc(0))).body.length, 0);
  assert.equal((await fetchEncoded(context, "gzip", Buffer.alloc(0), 10, 204)).body.length, 0);
});

test("a chain of encodings and an unknown one are not read", async (context) => {
  await assertFails(
    fetchEncoded(context, "gzip, gzip", gzipSync(gzipSync(text))),
    "unreadable",
    /more than one content encoding/,
  );
  await assertFails(
    fetchEncoded(context, "zstd", Buffer.from("x")),
    "unreadable",
    /other than gzip, deflate, br/,
  );
});

test("damaged and cut-off compression fails instead of giving half a body", async (context) => {
  const zipped = gzipSync(randomBytes(50_000));
  const bodies = {
    gzip: zipped.subarray(0, 20_000),
    br: Buffer.from("this is no brotli at all"),
    deflate: Buffer.from([0x78, 0x9c, 1, 2, 3]),
  };
  for (const [encoding, body] of Object.entries(bodies))
    await assertFails(fetchEncoded(context, encoding, body), "connection", /damaged or truncated/);
});

test("the cap counts decompressed bytes: exactly at it is well, one over fails", async (context) => {
  const body = "a".repeat(70_000);
  assert.equal((await fetchEncoded(context, "gzip", gzipSync(body), 70_000)).body.length, 70_000);
  await assertFails(fetchEncoded(context, "gzip", gzipSync(body), 69_999), "too_large", /over 69999 bytes/);
  assert.equal((await fetchEncoded(context, "identity", Buffer.from(body), 70_000)).body.length, 70_000);
  await assertFails(fetchEncoded(context, "identity", Buffer.from(body), 69_999), "too_large");
});

test("a bomb costs no more than the cap: memory stays low and the connection is cut", async (context) => {
  for (const [encoding, compress] of [
    ["gzip", createGzip],
    ["br", createBrotliCompress],
  ] as const) {
    const closed = Promise.withResolvers<void>();
    // Four gigabytes of zeros, as long as anybody reads them.
    const target = await startTarget(context, (_seen, response) => {
      response.writeHead(200, { "content-encoding": encoding });
      const packer = compress();
      const zeros = Buffer.alloc(1_048_576);
      let left = 4_096;
      const pump = () => {
        while (left > 0 && !packer.destroyed) {
          left--;
          if (!packer.write(zeros)) return;
        }
        packer.end();
      };
      packer.on("drain", pump).on("error", () => undefined);
      response.on("close", () => {
        packer.destroy();
        closed.resolve();
      });
      packer.pipe(response);
      pump();
    });
    const gate = openTestGate(context, loopback);
    const before = process.memoryUsage().rss;
    await assertFails(
      send(gate, target.origin, policyFor([target.origin], { maxBytes: 10_000_000, timeoutMs: 30_000 })),
      "too_large",
    );
    await closed.promise;
    assert.ok(
      process.memoryUsage().rss - before < 150_000_000,
      "no more than the cap and its neighbourhood is held",
    );
  }
});

test("51 bytes of brotli that unfold to 64 MiB are stopped at the cap", async (context) => {
  const bomb = brotliCompressSync(Buffer.alloc(64 * 1_048_576));
  assert.ok(bomb.length < 200);
  await assertFails(fetchEncoded(context, "br", bomb, 10_000_000), "too_large");
});

test("response headers over 64 KiB fail, trailers are not seen", async (context) => {
  const gate = openTestGate(context, loopback);
  const huge = await startTcp(
    context,
    (socket) =>
      void socket.once("data", () =>
        socket.write(`HTTP/1.1 200 OK\r\nX-Long: ${"a".repeat(70_000)}\r\n\r\n`),
      ),
  );
  await assertFails(
    send(gate, `http://127.0.0.1:${huge.port}`, policyFor([`http://127.0.0.1:${huge.port}`])),
    "too_large",
    /headers/,
  );
  const trailing = await startTcp(
    context,
    (socket) =>
      void socket.once("data", () =>
        socket.write(
          "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: x-late\r\n\r\n2\r\nok\r\n0\r\nx-late: 1\r\n\r\n",
        ),
      ),
  );
  const response = await send(
    gate,
    `http://127.0.0.1:${trailing.port}`,
    policyFor([`http://127.0.0.1:${trailing.port}`]),
  );
  assert.equal(response.text(), "ok");
  assert.equal(response.headers.has("x-late"), false);
});

test("a small body is whole or fails, however its length is declared", async (context) => {
  const gate = openTestGate(context, loopback);
  const answered = async (head: string, parts: readonly string[], maxBytes = 1_000): Promise<string> => {
    const { port } = await startTcp(context, (socket) => {
      socket.on("error", () => undefined);
      socket.once("data", () => {
        socket.write(`HTTP/1.1 200 OK\r\nConnection: close\r\n${head}\r\n\r\n`);
        for (const part of parts) setImmediate(() => socket.write(part));
        setImmediate(() => socket.end());
      });
    });
    const origin = `http://127.0.0.1:${port}`;
    return (await send(gate, origin, policyFor([origin], { maxBytes }))).text();
  };
  assert.equal(await answered("Content-Length: 10", ["hello", "world"]), "helloworld");
  assert.equal(await answered("Content-Length: 0", []), "");
  assert.equal(await answered("X-Length: unknown", ["hello"]), "hello");
  assert.equal(await answered("Transfer-Encoding: chunked", ["5\r\nhello\r\n", "0\r\n\r\n"]), "hello");
  await assertFails(answered("Content-Length: 10", ["hello"]), "connection");
  await assertFails(answered("Content-Length: 10", ["hello", "world"], 9), "too_large");
  await assertFails(answered("Transfer-Encoding: chunked", ["5\r\nhel"]), "connection");
});

test("text is read by the charset of its content type, UTF-8 where there is none or an unknown one", async (context) => {
  const read = async (contentType: string | null, body: Uint8Array) => {
    const target = await startTarget(context, (_seen, response) =>
      response.writeHead(200, contentType === null ? {} : { "content-type": contentType }).end(body),
    );
    return (await send(openTestGate(context, loopback), target.origin, policyFor([target.origin]))).text();
  };
  assert.equal(await read(null, Buffer.from("ä")), "ä");
  assert.equal(await read("text/html; charset=no-such", Buffer.from("ä")), "ä");
  assert.equal(await read('text/html; charset="windows-1252"', Buffer.from([0x80])), "€");
  assert.equal(await read("text/plain; charset=utf-16le", Buffer.from("ä", "utf16le")), "ä");
});
