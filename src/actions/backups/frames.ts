/**
 * What is inside a backup, before it is compressed and sealed: frames. A frame is a head (JSON), and a body of any length in pieces.
 * Every length is four bytes, big-endian; a piece of length 0 ends the body.
 */
export type FrameHead =
  | ({ readonly frame: "manifest" } & Manifest)
  | { readonly frame: "table"; readonly name: string; readonly columns: readonly string[] }
  | { readonly frame: "object"; readonly key: string }
  | ({ readonly frame: "end" } & Totals);

/** What a restore must know before it begins. */
export interface Manifest {
  /** ISO 8601, by the database's clock: everything acknowledged before is in it. */
  readonly takenAt: string;
  /** The applied migrations, in their order. */
  readonly migrations: readonly { readonly name: string; readonly sha256: string }[];
  /** The ids of all master keys with which its values are sealed. */
  readonly masterKeys: readonly string[];
  /** The fingerprint of the signing key, hexadecimal. */
  readonly signingKey: string;
}

/** The last frame: without it, or with other numbers than those of the frames before, the backup is not whole. */
export interface Totals {
  readonly rows: Readonly<Record<string, number>>;
  readonly sequences: readonly { readonly name: string; readonly lastValue: string }[];
  readonly objects: number;
  /** Objects to which rows refer and that the store had lost before. */
  readonly missing: number;
}

const PIECE_BYTES_MAX = 1_048_576;
const HEAD_BYTES_MAX = 1_048_576;

/** One frame as bytes. */
export async function* writeFrame(
  head: FrameHead,
  body: AsyncIterable<Uint8Array> | null = null,
): AsyncGenerator<Uint8Array> {
  yield withLength(Buffer.from(JSON.stringify(head), "utf8"));
  if (body !== null)
    for await (const bytes of body)
      for (let at = 0; at < bytes.byteLength; at += PIECE_BYTES_MAX) {
        // Not copied into one: garbage of this size is collected late, and would double the memory of a backup.
        const piece = bytes.subarray(at, at + PIECE_BYTES_MAX);
        yield lengthOf(piece.byteLength);
        yield piece;
      }
  yield lengthOf(0);
}

const withLength = (bytes: Uint8Array): Buffer => Buffer.concat([lengthOf(bytes.byteLength), bytes]);

function lengthOf(bytes: number): Buffer {
  const length = Buffer.alloc(4);
  length.writeUInt32BE(bytes);
  return length;
}

/** A frame that was read. Its body must be read to its end before the next frame is asked for. */
export interface Frame {
  readonly head: FrameHead;
  readonly body: AsyncIterable<Uint8Array>;
}

/** The bytes were written by another program: those of ours are verified before they come here. */
class NotFrames extends Error {
  override readonly name = "NotFrames";
}

/** Reads frames to the end of the bytes. */
export async function* readFrames(source: AsyncIterable<Uint8Array>): AsyncGenerator<Frame> {
  const bytes = new Bytes(source);
  while (!(await bytes.isOver())) {
    const length = await bytes.length(HEAD_BYTES_MAX);
    const head = JSON.parse((await bytes.take(length)).toString("utf8")) as FrameHead;
    let isRead = false;
    async function* body(): AsyncGenerator<Uint8Array> {
      for (;;) {
        let left = await bytes.length(PIECE_BYTES_MAX);
        if (left === 0) break;
        while (left > 0) {
          const some = await bytes.takeSome(left);
          left -= some.length;
          yield some;
        }
      }
      isRead = true;
    }
    const whole = body();
    yield { head, body: whole };
    // A reader that has no use for the body.
    if (!isRead) for await (const _ of whole);
    if (!isRead) throw new NotFrames("a frame was left in the middle");
  }
}

/** Takes given numbers of bytes from a stream, whose chunks must not change afterwards: they are not copied. */
class Bytes {
  readonly #source: AsyncIterator<Uint8Array>;
  #held: Buffer = Buffer.alloc(0);

  constructor(source: AsyncIterable<Uint8Array>) {
    this.#source = source[Symbol.asyncIterator]();
  }

  async isOver(): Promise<boolean> {
    return !(await this.#hold(1));
  }

  async length(most: number): Promise<number> {
    const length = (await this.take(4)).readUInt32BE();
    if (length > most) throw new NotFrames("a frame has an impossible length");
    return length;
  }

  async take(count: number): Promise<Buffer> {
    if (!(await this.#hold(count))) throw new NotFrames("the frames end too early");
    const taken = this.#held.subarray(0, count);
    this.#held = this.#held.subarray(count);
    return taken;
  }

  /** At least one byte and at most `most`: as many as are there. */
  async takeSome(most: number): Promise<Buffer> {
    await this.#hold(1);
    return await this.take(Math.min(most, Math.max(this.#held.length, 1)));
  }

  async #hold(count: number): Promise<boolean> {
    while (this.#held.length < count) {
      const next = await this.#source.next();
      if (next.done === true) return false;
      const { buffer, byteOffset, byteLength } = next.value;
      const added = Buffer.from(buffer, byteOffset, byteLength);
      this.#held = this.#held.length === 0 ? added : Buffer.concat([this.#held, added]);
    }
    return true;
  }
}
