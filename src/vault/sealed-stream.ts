import { createCipheriv, createDecipheriv, createHash, hkdfSync, randomBytes } from "node:crypto";
import { ExplainedError } from "#lib/explained-error.ts";
import type { MasterKey } from "./master-key.ts";
import type { SealBinding } from "./binding.ts";
import { openVault, VaultError } from "./vault.ts";

/**
 * A sealed stream: one line of JSON, then chunks. The line holds a random key, sealed to a public key as every other value is
 * (`vault.ts`). The chunks are encrypted with AES-256-GCM in the STREAM construction, as in age: the nonce is the chunk's number and
 * whether it is the last one, so that no chunk can be changed, dropped, repeated or moved, and no stream be cut. The payload's key is
 * derived from the sealed key and the whole line. docs/decisions/0039.
 */
export interface SealedHeader {
  /** What the stream is and what it says of itself, readable without a key. */
  readonly about: Readonly<Record<string, unknown>>;
  /** The id of the key that opens it. */
  readonly kid: string;
}

/** A stream that can't be opened. The message has no part of its content. */
export class SealedStreamError extends ExplainedError {}

/** An HMAC with a key of the sealer, which proves to a holder of its key that nobody else has made the stream. */
type Mac = (data: string) => Buffer;

const CHUNK_BYTES = 65_536;
const TAG_BYTES = 16;
const KEY_BYTES = 32;
const NONCE_BYTES = 12;
const HEADER_BYTES_MAX = 65_536;
const CIPHER = "aes-256-gcm";
const NEWLINE = 0x0a;

const bindingOf = (kid: string): SealBinding => ({
  purpose: "backup",
  accountId: "",
  rowId: kid,
  strategyId: "",
});

/** Seals a stream to a public key (JWK text). Yields the whole stream, its line included. */
export async function* sealStream(
  plain: AsyncIterable<Uint8Array>,
  { publicJwk, about, mac }: { readonly publicJwk: string; readonly about: object; readonly mac: Mac },
): AsyncGenerator<Buffer> {
  const vault = openVault({ publicKey: publicJwk });
  const fileKey = randomBytes(KEY_BYTES);
  const { sealed, kid } = await vault.seal(fileKey, bindingOf(vault.kid));
  const unsigned = { about, kid, sealed_key: Buffer.from(sealed).toString("base64url") };
  const line = JSON.stringify({ ...unsigned, mac: macOf(mac, unsigned, fileKey).toString("base64url") });
  const key = payloadKey(fileKey, line);
  fileKey.fill(0);
  yield Buffer.from(`${line}\n`);
  let number = 0;
  for await (const { bytes, isLast } of inChunks(plain, CHUNK_BYTES)) {
    const cipher = createCipheriv(CIPHER, key, nonceOf(number++, isLast));
    yield Buffer.concat([cipher.update(bytes), cipher.final(), cipher.getAuthTag()]);
  }
}

/** A sealed stream whose line was read. Neither the line nor the rest is verified yet. */
export interface SealedStream {
  readonly header: SealedHeader;
  /**
   * Verifies the line and yields the content, each chunk verified. Throws SealedStreamError for any change, and at the end for a
   * missing part: what was yielded before may then be used for nothing.
   */
  open(keys: MasterKey, mac: Mac): AsyncGenerator<Buffer>;
}

/** Reads the line of a sealed stream. Throws SealedStreamError when there is none. */
export async function readSealedStream(source: AsyncIterable<Uint8Array>): Promise<SealedStream> {
  const rest = source[Symbol.asyncIterator]();
  let head = Buffer.alloc(0);
  while (!head.includes(NEWLINE)) {
    const next = head.length > HEADER_BYTES_MAX ? { done: true as const } : await rest.next();
    if (next.done === true)
      throw new SealedStreamError("This is not a sealed file: its first line is missing.");
    head = Buffer.concat([head, next.value]);
  }
  const end = head.indexOf(NEWLINE);
  const line = head.subarray(0, end).toString("utf8");
  const { mac: given, ...unsigned } = parseLine(line);
  async function* remaining(): AsyncGenerator<Uint8Array> {
    if (head.length > end + 1) yield head.subarray(end + 1);
    for (let next = await rest.next(); next.done !== true; next = await rest.next()) yield next.value;
  }
  return {
    header: { about: unsigned.about, kid: unsigned.kid },
    open: (keys, mac) => openPayload(remaining(), { line, unsigned, given, keys, mac }),
  };
}

async function* openPayload(
  payload: AsyncIterable<Uint8Array>,
  read: {
    readonly line: string;
    readonly unsigned: UnsignedLine;
    readonly given: string;
    readonly keys: MasterKey;
    readonly mac: Mac;
  },
): AsyncGenerator<Buffer> {
  const { line, unsigned, given, keys, mac } = read;
  const fileKey = await openFileKey(unsigned, keys);
  // Of two fixed lengths, and not secret to a holder of the file's key: an ordinary comparison will do.
  if (macOf(mac, unsigned, fileKey).toString("base64url") !== given)
    throw new SealedStreamError(
      "It was made with another signing key, or its first line was changed after it was made.",
    );
  const key = payloadKey(fileKey, line);
  fileKey.fill(0);
  let number = 0;
  for await (const { bytes, isLast } of inChunks(payload, CHUNK_BYTES + TAG_BYTES)) {
    const plain = openChunk(key, bytes, number++, isLast);
    if (plain === undefined) throw damaged(number);
    yield plain;
  }
}

const damaged = (number: number): SealedStreamError =>
  new SealedStreamError(
    `It was cut off or changed after it was made, in or after its ${Math.max(1, Math.ceil((number * CHUNK_BYTES) / 1_048_576))}. megabyte.`,
  );

function openChunk(key: Buffer, bytes: Buffer, number: number, isLast: boolean): Buffer | undefined {
  if (bytes.length < TAG_BYTES) return undefined;
  const decipher = createDecipheriv(CIPHER, key, nonceOf(number, isLast), { authTagLength: TAG_BYTES });
  decipher.setAuthTag(bytes.subarray(-TAG_BYTES));
  try {
    return Buffer.concat([decipher.update(bytes.subarray(0, -TAG_BYTES)), decipher.final()]);
  } catch {
    return undefined;
  }
}

async function openFileKey({ kid, sealed_key }: UnsignedLine, keys: MasterKey): Promise<Buffer> {
  const vault = openVault({ publicKey: keys.publicJwk, privateKeys: keys.privateKeys });
  if (!vault.holds(kid))
    throw new SealedStreamError(
      `It is sealed to the key ${kid}, and the keyset at hand has only ${[...keys.privateKeys.keys()].join(", ")}.`,
    );
  try {
    return Buffer.from(await vault.open(Buffer.from(sealed_key, "base64url"), bindingOf(kid)));
  } catch (error) {
    if (!(error instanceof VaultError)) throw error;
    throw new SealedStreamError("Its first line was changed after it was made.");
  }
}

interface UnsignedLine {
  readonly about: Readonly<Record<string, unknown>>;
  readonly kid: string;
  readonly sealed_key: string;
}

function parseLine(line: string): UnsignedLine & { readonly mac: string } {
  let value: unknown;
  try {
    value = JSON.parse(line);
  } catch {
    value = null;
  }
  const { about, kid, sealed_key, mac } = (value ?? {}) as Record<string, unknown>;
  const isWhole =
    typeof about === "object" &&
    about !== null &&
    typeof kid === "string" &&
    typeof sealed_key === "string" &&
    typeof mac === "string";
  if (!isWhole) throw new SealedStreamError("This is not a sealed file: its first line is not ours.");
  return { about: about as Readonly<Record<string, unknown>>, kid, sealed_key, mac };
}

/** Over the line and the file's key: who only has the public key can make neither this nor chunks for another line. */
const macOf = (mac: Mac, unsigned: UnsignedLine | object, fileKey: Buffer): Buffer =>
  mac(JSON.stringify([unsigned, createHash("sha256").update(fileKey).digest("hex")]));

const payloadKey = (fileKey: Buffer, line: string): Buffer =>
  Buffer.from(
    hkdfSync(
      "sha256",
      fileKey,
      createHash("sha256").update(line).digest(),
      "latchkey/v1/sealed-stream",
      KEY_BYTES,
    ),
  );

/** Eleven bytes of the number, one byte of whether it is the last chunk. */
function nonceOf(number: number, isLast: boolean): Buffer {
  const nonce = Buffer.alloc(NONCE_BYTES);
  nonce.writeBigUInt64BE(BigInt(number), NONCE_BYTES - 1 - 8);
  nonce[NONCE_BYTES - 1] = isLast ? 1 : 0;
  return nonce;
}

/** Chunks of `size` bytes; the last one, which always comes, is smaller or as large. */
async function* inChunks(
  source: AsyncIterable<Uint8Array>,
  size: number,
): AsyncGenerator<{ readonly bytes: Buffer; readonly isLast: boolean }> {
  let held: Uint8Array[] = [];
  let heldBytes = 0;
  for await (const piece of source) {
    held.push(piece);
    heldBytes += piece.byteLength;
    // A chunk is only known not to be the last one when there is more.
    if (heldBytes <= size) continue;
    let all = Buffer.concat(held);
    for (; all.length > size; all = all.subarray(size)) yield { bytes: all.subarray(0, size), isLast: false };
    held = [all];
    heldBytes = all.length;
  }
  yield { bytes: Buffer.concat(held), isLast: true };
}
