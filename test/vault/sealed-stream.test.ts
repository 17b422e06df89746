// docs/decisions/0039: a sealed stream opens whole, for the right keys, or not at all.
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { test } from "node:test";
import { generateSigningKey, openSigning, readSigningKey } from "#lib/signing.ts";
import { generateMasterKey, readMasterKey } from "#vault/master-key.ts";
import { readSealedStream, sealStream, SealedStreamError } from "#vault/sealed-stream.ts";

const CHUNK = 65_536;
const SEALED_CHUNK = CHUNK + 16;
const { fileText, publicJwk, kid } = generateMasterKey();
const keys = readMasterKey(fileText);
const mac = openSigning(readSigningKey(generateSigningKey())).backupMac;
const about = { format: "test", version: 1 };

async function* pieces(bytes: Buffer, size: number): AsyncGenerator<Buffer> {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
}

async function seal(plain: Buffer, pieceBytes = 10_000, by = mac): Promise<Buffer> {
  const sealed: Buffer[] = [];
  for await (const bytes of sealStream(pieces(plain, pieceBytes), { publicJwk, about, mac: by }))
    sealed.push(bytes);
  return Buffer.concat(sealed);
}

async function open(sealed: Buffer, pieceBytes = 50_000, of = keys, by = mac): Promise<Buffer> {
  const opened: Buffer[] = [];
  const stream = await readSealedStream(pieces(sealed, pieceBytes));
  for await (const bytes of stream.open(of, by)) opened.push(bytes);
  return Buffer.concat(opened);
}

const refused = async (sealed: Buffer, what: RegExp = /cut off or changed/): Promise<void> =>
  await assert.rejects(
    open(sealed),
    (error: Error) => error instanceof SealedStreamError && what.test(error.message),
  );

test("content of any length opens as it was, whatever the sizes of the pieces", async () => {
  for (const length of [0, 1, CHUNK - 1, CHUNK, CHUNK + 1, 3 * CHUNK, 3 * CHUNK + 17]) {
    const plain = randomBytes(length);
    for (const pieceBytes of [1_000, CHUNK, 200_000])
      assert.ok(
        (await open(await seal(plain, pieceBytes), pieceBytes)).equals(plain),
        `${length} bytes by ${pieceBytes}`,
      );
  }
});

test("what the stream is and which key it needs can be read without a key", async () => {
  const { header } = await readSealedStream(pieces(await seal(Buffer.from("x")), 10));
  assert.deepEqual(header, { about, kid });
});

test("a stream that was cut anywhere, at the end of a chunk too, never ends well", async () => {
  const sealed = await seal(randomBytes(3 * CHUNK + 100));
  const head = sealed.indexOf("\n") + 1;
  const cuts = [
    0,
    1,
    15,
    16,
    100,
    SEALED_CHUNK,
    SEALED_CHUNK + 1,
    2 * SEALED_CHUNK,
    3 * SEALED_CHUNK,
    sealed.length - head - 1,
  ];
  for (const cut of cuts) await refused(sealed.subarray(0, head + cut));
  await refused(sealed.subarray(0, head - 1), /first line is missing/);
  // The whole number of chunks: the cut is where another stream would end.
  const even = await seal(randomBytes(2 * CHUNK));
  await refused(even.subarray(0, even.length - SEALED_CHUNK));
});

test("a bit that was flipped anywhere is noticed before its chunk is handed over", async () => {
  const plain = randomBytes(2 * CHUNK + 100);
  const sealed = await seal(plain);
  const head = sealed.indexOf("\n") + 1;
  const places = [0, 16, CHUNK - 1, CHUNK, SEALED_CHUNK - 1, SEALED_CHUNK, sealed.length - head - 1];
  for (const place of places) {
    const changed = Buffer.from(sealed);
    changed.writeUInt8(changed.readUInt8(head + place) ^ 1, head + place);
    const stream = await readSealedStream(pieces(changed, 30_000));
    let given = 0;
    await assert.rejects(async () => {
      for await (const bytes of stream.open(keys, mac)) {
        assert.ok(bytes.equals(plain.subarray(given, given + bytes.length)));
        given += bytes.length;
      }
    }, SealedStreamError);
    assert.equal(given, Math.floor(place / SEALED_CHUNK) * CHUNK);
  }
});

test("each byte of the first line counts", async () => {
  const sealed = await seal(randomBytes(100));
  const head = sealed.indexOf("\n");
  for (let place = 0; place < head; place += 7) {
    const changed = Buffer.from(sealed);
    changed.writeUInt8(changed.readUInt8(place) ^ 1, place);
    await assert.rejects(open(changed), SealedStreamError, `byte ${place}`);
  }
});

test("chunks that were swapped, repeated, left out, added or taken from another stream are noticed", async () => {
  const [one, other] = [await seal(randomBytes(4 * CHUNK)), await seal(randomBytes(4 * CHUNK))];
  const split = (sealed: Buffer): [Buffer, ...Buffer[]] => {
    const head = sealed.indexOf("\n") + 1;
    return [
      sealed.subarray(0, head),
      ...[0, 1, 2, 3].map((at) => sealed.subarray(head + at * SEALED_CHUNK, head + (at + 1) * SEALED_CHUNK)),
    ];
  };
  const [line, a, b, c, d] = split(one) as [Buffer, Buffer, Buffer, Buffer, Buffer];
  const [otherLine, e, f] = split(other) as [Buffer, Buffer, Buffer];
  assert.equal((await open(Buffer.concat([line, a, b, c, d]))).length, 4 * CHUNK);
  for (const parts of [
    [line, b, a, c, d],
    [line, a, b, b, d],
    [line, a, c, d],
    [line, a, b, c, d, d],
    [line, a, b, c, d, Buffer.from("x")],
    [line, a, f, c, d],
    [line, e, b, c, d],
    [otherLine, a, b, c, d],
  ])
    await assert.rejects(open(Buffer.concat(parts)), SealedStreamError);
});

test("another private key, and another signing key, open nothing and say which is wrong", async () => {
  const sealed = await seal(Buffer.from("rows"));
  const other = generateMasterKey();
  await assert.rejects(
    open(sealed, 1_000, readMasterKey(other.fileText)),
    (error: Error) =>
      error instanceof SealedStreamError && error.message.includes(kid) && error.message.includes(other.kid),
  );
  // Anyone who can read the database has the public key, and can seal.
  const forged = await seal(
    Buffer.from("rows"),
    1_000,
    openSigning(readSigningKey(generateSigningKey())).backupMac,
  );
  await refused(forged, /another signing key/);
});

test("what is no sealed stream is said to be none", async () => {
  for (const text of [
    "",
    "\n",
    "{}\n",
    "null\n",
    "[1]\n",
    "PGDMP\n",
    `${JSON.stringify({ about, kid, sealed_key: "x" })}\n`,
    "x".repeat(200_000),
  ])
    await assert.rejects(open(Buffer.from(text)), SealedStreamError, text.slice(0, 20));
});
