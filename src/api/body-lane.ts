import { ceilingsOf, type Ceilings } from "#domain/ceilings.ts";
import { limits } from "#domain/limits.ts";
import { Problem } from "#domain/problem.ts";
import { FairQueue } from "#lib/fair-queue.ts";

/** Bytes of bodies. */
interface LaneBounds {
  /** The total, read or not. */
  readonly bytesMax: number;
  /** The bytes being read or parsed at a time, which are held in memory. */
  readonly readBytesMax: number;
  /** One sender's share of these, unless it is a single body. */
  readonly senderReadBytesMax: number;
}

/** The right to read a body. */
export interface Turn {
  /** The body is longer than declared. Throws Problem 503 when there is no room for it. */
  grow(bytes: number): void;
  /** The body has been parsed or discarded. */
  end(): void;
}

interface Waiting {
  readonly sender: string;
  readonly bytes: number;
  readonly settle: PromiseWithResolvers<Turn>;
}

interface Held {
  bytes: number;
  readBytes: number;
}

const RETRY_AFTER_SECONDS = 2;

/**
 * Large bodies wait here before they are read: until then a body stays at its sender and takes only the socket's
 * buffer. Senders take turns. When there are too many bytes, the sender with the most bytes is refused.
 */
export class BodyLane {
  #bounds: LaneBounds;
  readonly #queue = new FairQueue<Waiting>();
  readonly #held = new Map<string, Held>();
  #bytes = 0;
  #readBytes = 0;

  constructor(bounds: LaneBounds) {
    this.#bounds = bounds;
  }

  /** Called before the first body, in a process that shares its ceilings with others. */
  setBounds(bounds: LaneBounds): void {
    this.#bounds = bounds;
  }

  /** Resolves when the body may be read; `end()` must be called then. Throws Problem 503. */
  async enter(sender: string, bytes: number): Promise<Turn> {
    this.#makeRoom(sender, bytes);
    this.#hold(sender, bytes);
    const waiting = { sender, bytes, settle: Promise.withResolvers<Turn>() };
    this.#queue.push(sender, waiting);
    this.#begin();
    return await waiting.settle.promise;
  }

  /** Makes room by refusing waiting bodies of senders with more bytes than this one; if that is not enough, there is no room. */
  #makeRoom(sender: string, bytes: number): void {
    const refused: Waiting[] = [];
    while (this.#bytes + bytes > this.#bounds.bytesMax) {
      const last = this.#takeOfGreediest((this.#held.get(sender)?.bytes ?? 0) + bytes);
      if (last === undefined) {
        for (const waiting of refused.reverse()) {
          this.#hold(waiting.sender, waiting.bytes);
          this.#queue.push(waiting.sender, waiting);
        }
        throw full();
      }
      this.#hold(last.sender, -last.bytes);
      refused.push(last);
    }
    for (const { settle } of refused) settle.reject(full());
  }

  #takeOfGreediest(moreThan: number): Waiting | undefined {
    let most = moreThan;
    let greediest: string | null = null;
    for (const name of this.#queue.names()) {
      const theirs = this.#held.get(name)?.bytes ?? 0;
      if (theirs > most) [most, greediest] = [theirs, name];
    }
    return greediest === null ? undefined : this.#queue.takeLast(greediest);
  }

  #hold(sender: string, bytes: number, readBytes = 0): void {
    const held = this.#held.get(sender) ?? { bytes: 0, readBytes: 0 };
    held.bytes += bytes;
    held.readBytes += readBytes;
    this.#bytes += bytes;
    this.#readBytes += readBytes;
    if (held.bytes === 0) this.#held.delete(sender);
    else this.#held.set(sender, held);
  }

  #begin(): void {
    for (;;) {
      let isFull = false;
      const next = this.#queue.take((name, { bytes }) => {
        const own = this.#held.get(name)?.readBytes ?? 0;
        if (isFull || (own > 0 && own + bytes > this.#bounds.senderReadBytesMax)) return false;
        // No later body overtakes it: otherwise a long body would wait forever among short ones.
        isFull = this.#readBytes > 0 && this.#readBytes + bytes > this.#bounds.readBytesMax;
        return !isFull;
      });
      if (next === undefined) return;
      next.settle.resolve(this.#turn(next.sender, next.bytes));
    }
  }

  #turn(sender: string, begunBytes: number): Turn {
    let bytes = begunBytes;
    this.#hold(sender, 0, bytes);
    return {
      grow: (to) => {
        const more = to - bytes;
        if (more <= 0) return;
        if (this.#readBytes + more > this.#bounds.readBytesMax) throw full();
        this.#makeRoom(sender, more);
        this.#hold(sender, more, more);
        bytes = to;
      },
      end: () => {
        this.#hold(sender, -bytes, -bytes);
        bytes = 0;
        this.#begin();
      },
    };
  }
}

function full(): Problem {
  return new Problem(
    "internal_error",
    "Too many large bodies are waiting. Try again after the time in the header Retry-After.",
    { status: 503, headers: { "Retry-After": String(RETRY_AFTER_SECONDS), Connection: "close" } },
  );
}

/** The lane of this process. */
export const bodyLane = new BodyLane(laneBounds(ceilingsOf(1)));

export function laneBounds({ largeBodiesBytes, largeBodiesReadBytes }: Ceilings): LaneBounds {
  return {
    bytesMax: largeBodiesBytes,
    readBytesMax: largeBodiesReadBytes,
    senderReadBytesMax: limits.triggerJsonBytesMax,
  };
}
