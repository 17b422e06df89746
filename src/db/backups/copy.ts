import { once } from "node:events";
import type { Duplex } from "node:stream";
import pg from "pg";

/**
 * COPY over one connection, as streams. The driver has messages for it but no interface; its pools send several statements at once,
 * and refuse queries of other classes than its own, so these are of its own.
 */

/** Longer than any backup, as the pool's wait for an answer would end it. */
const QUERY_TIMEOUT_MS = 2 ** 31 - 1;
/** Rows are handed over in pieces of this size, and no more than twice as much is held. */
const PIECE_BYTES = 65_536;
const HELD_BYTES_MAX = 4 * PIECE_BYTES;

/** The part of the driver's connection that is used. */
interface Connection {
  readonly stream: Duplex;
  sendCopyFromChunk(chunk: Uint8Array): void;
  endCopyFrom(): void;
  sendCopyFail(message: string): void;
}

interface CopyMessage {
  readonly chunk: Buffer;
}

/** What was received and not read yet. */
class Received {
  readonly #pieces: Buffer[] = [];
  #held: Buffer[] = [];
  #heldBytes = 0;
  #queuedBytes = 0;
  #stream: Duplex | null = null;
  #outcome: Outcome | null = null;
  #wake = (): void => {};

  add(chunk: Buffer, stream: Duplex): void {
    // The parser uses its buffer again.
    this.#held.push(Buffer.from(chunk));
    this.#heldBytes += chunk.length;
    if (this.#heldBytes < PIECE_BYTES) return;
    this.#flush();
    if (this.#queuedBytes > HELD_BYTES_MAX) (this.#stream = stream).pause();
    this.#wake();
  }

  end(outcome: Outcome): void {
    this.#flush();
    this.#outcome ??= outcome;
    this.#wake();
  }

  /** The next piece, or how it ended. */
  async next(): Promise<Buffer | Outcome> {
    for (;;) {
      const piece = this.#pieces.shift();
      if (piece !== undefined) {
        this.#queuedBytes -= piece.length;
        if (this.#queuedBytes <= HELD_BYTES_MAX) this.#stream?.resume();
        return piece;
      }
      if (this.#outcome !== null) return this.#outcome;
      await new Promise<void>((resolve) => (this.#wake = resolve));
    }
  }

  #flush(): void {
    if (this.#heldBytes > 0) this.#pieces.push(Buffer.concat(this.#held));
    this.#queuedBytes += this.#heldBytes;
    this.#held = [];
    this.#heldBytes = 0;
  }
}

interface Outcome {
  readonly rows: number;
  readonly error: Error | null;
}

/**
 * `COPY … TO STDOUT`: its bytes. The server waits while nobody reads. Ends with the number of rows. A reader that stops early leaves the
 * connection in the middle of its answer: its owner must end it.
 */
export async function* copyOut(client: pg.ClientBase, statement: string): AsyncGenerator<Buffer, number> {
  const received = new Received();
  class CopyOut extends pg.Query {
    readonly query_timeout = QUERY_TIMEOUT_MS;
    handleCopyData({ chunk }: CopyMessage, { stream }: Connection): void {
      received.add(chunk, stream);
    }
  }
  client.query(
    new CopyOut(statement, (error, result) =>
      received.end({ rows: error ? 0 : (result.rowCount ?? 0), error: error ?? null }),
    ),
  );
  for (;;) {
    const next = await received.next();
    if (Buffer.isBuffer(next)) yield next;
    else if (next.error !== null) throw next.error;
    else return next.rows;
  }
}

/** `COPY … FROM STDIN`: sends the bytes no faster than the server takes them. Returns the number of rows. */
export async function copyIn(
  client: pg.ClientBase,
  statement: string,
  rows: AsyncIterable<Uint8Array>,
): Promise<number> {
  const done = Promise.withResolvers<number>();
  const ready = Promise.withResolvers<Connection>();
  class CopyIn extends pg.Query {
    readonly query_timeout = QUERY_TIMEOUT_MS;
    handleCopyInResponse(connection: Connection): void {
      ready.resolve(connection);
    }
  }
  client.query(
    new CopyIn(statement, (error, result) => {
      if (error === undefined || error === null) return done.resolve(result.rowCount ?? 0);
      done.reject(error);
      ready.reject(error);
    }),
  );
  // Only one of them is awaited at a time.
  done.promise.catch(() => {});
  const connection = await ready.promise;
  let isOver = false;
  const over = done.promise.catch(() => {}).then(() => (isOver = true));
  try {
    for await (const piece of rows) {
      // The server refused a row: it says so at once, and ignores the rest.
      if (isOver) break;
      connection.sendCopyFromChunk(piece);
      if (connection.stream.writableNeedDrain) await Promise.race([once(connection.stream, "drain"), over]);
    }
  } catch (error) {
    if (!isOver) connection.sendCopyFail("the rows could not be read");
    throw error;
  }
  if (!isOver) connection.endCopyFrom();
  return await done.promise;
}
