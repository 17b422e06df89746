import { hostname } from "node:os";
import { isConnectionLost } from "#db/connection/database-errors.ts";
import type { Database } from "#db/connection/pool.ts";
import {
  beat,
  beatWithNewLock,
  deleteWorker,
  insertWorker,
  savePoolIds,
  takeLivenessLock,
} from "#db/runs/workers.ts";
import { ID_PREFIX } from "#domain/ids.ts";
import { limits } from "#domain/limits.ts";
import type { Clock } from "#lib/clock.ts";
import { describeError, type Log } from "#lib/log.ts";
import type { Random } from "#lib/random.ts";
import type { SelfFence } from "#engine/self-fence.ts";
import { newId } from "#lib/new-id.ts";

const LOCK_KEY_MAX = 2 ** 48 - 1;
const RECONNECT_EVERY_MS = 100;

/** The membership of a worker: a row, a session advisory lock on a separate connection, and a heartbeat. */
export interface Membership {
  readonly workerId: string;
  leave(): Promise<void>;
}

export interface MembershipEvents {
  /** Called once when the membership was lost: another process has taken over, and the runs now belong to others. */
  readonly onLost: () => void;
  /** The connection broke and is being replaced: a database restart costs no run its worker. */
  readonly onInterrupted: () => void;
}

interface LockedSession {
  readonly connection: Database;
  readonly lockKey: number;
}

/** Joins the workers. */
export async function join(
  parts: MembershipParts,
  poolIds: readonly string[],
  events: MembershipEvents,
): Promise<Membership> {
  const member = new Member({ ...parts, events });
  await member.join(poolIds);
  return member;
}

/** Opens a separate connection that never reconnects: when it breaks, `onLost` is called once. */
export type OpenLivenessSession = (onLost: () => void) => Promise<Database>;

/** The dependencies of a membership. */
export interface MembershipParts {
  readonly db: Database;
  readonly openSession: OpenLivenessSession;
  readonly log: Log;
  readonly clock: Clock;
  readonly random: Random;
  readonly fence: SelfFence;
}

interface MemberParts extends MembershipParts {
  readonly events: MembershipEvents;
}

class Member implements Membership {
  readonly workerId = newId(ID_PREFIX.worker);
  readonly #parts: MemberParts;
  /** null while a new connection is being opened. */
  #held: LockedSession | null = null;
  #stopHeart = (): void => {};
  #isOver = false;

  constructor(parts: MemberParts) {
    this.#parts = parts;
  }

  async join(poolIds: readonly string[]): Promise<void> {
    const { db } = this.#parts;
    const held = await this.#open();
    try {
      const sentAtMs = this.#parts.clock.now();
      const { workerId: id } = this;
      await insertWorker(db, { id, lockKey: held.lockKey, hostname: hostname(), pid: process.pid });
      this.#parts.fence.heard(id, sentAtMs);
      await savePoolIds(db, id, poolIds);
    } catch (error) {
      // Otherwise it would stay open, with its lock, and keep the process from ending.
      await held.connection.end();
      throw error;
    }
    this.#held = held;
    this.#stopHeart = this.#parts.clock.every(limits.heartbeatMs, () => this.#beat());
    // It was lost before the handler was set: every query on it fails, including the next heartbeat.
    this.#beat();
  }

  async leave(): Promise<void> {
    this.#isOver = true;
    this.#stopHeart();
    await deleteWorker(this.#parts.db, this.workerId).catch(() => {});
    await this.#held?.connection.end();
  }

  #lose(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#stopHeart();
    this.#parts.log.warn({ workerId: this.workerId }, "another process took this worker's runs over");
    void this.#held?.connection.end();
    this.#parts.events.onLost();
  }

  // On the same connection as the lock: if it hangs, both end.
  #beat(): void {
    const held = this.#held;
    if (held === null) return;
    const sentAtMs = this.#parts.clock.now();
    beat(held.connection, this.workerId).then(
      (alive) => {
        if (alive) this.#parts.fence.heard(this.workerId, sentAtMs);
        else this.#lose();
      },
      (error: unknown) => {
        this.#parts.log.warn(describeError(error), "a heartbeat failed");
        if (isConnectionLost(error)) this.#interrupted(held.connection);
      },
    );
  }

  #interrupted(connection: Database): void {
    if (this.#isOver || this.#held?.connection !== connection) return;
    this.#held = null;
    this.#parts.log.warn(
      { workerId: this.workerId },
      "the liveness connection was lost; another one is opened",
    );
    void connection.end();
    this.#parts.events.onInterrupted();
    void this.#reconnect();
  }

  async #reconnect(): Promise<void> {
    while (!this.#isOver && this.#held === null) {
      try {
        await this.#continueSession(await this.#open());
      } catch (error) {
        this.#parts.log.debug(describeError(error), "the liveness connection could not be opened; retrying");
        await this.#parts.clock.sleep(RECONNECT_EVERY_MS);
      }
    }
  }

  async #continueSession(next: LockedSession): Promise<void> {
    const sentAtMs = this.#parts.clock.now();
    try {
      const isAlive = await beatWithNewLock(next.connection, this.workerId, next.lockKey);
      if (isAlive && !this.#isOver) {
        this.#parts.fence.heard(this.workerId, sentAtMs);
        this.#held = next;
        return;
      }
    } catch (error) {
      await next.connection.end();
      throw error;
    }
    await next.connection.end();
    this.#lose();
  }

  async #open(): Promise<LockedSession> {
    return await openLocked(this.#parts, (gone) => this.#interrupted(gone));
  }
}

/** A connection with a new lock: the server may still hold the old one, if it has not noticed the end of the old connection. */
async function openLocked(
  { openSession, random }: Pick<MemberParts, "openSession" | "random">,
  onLost: (connection: Database) => void,
): Promise<LockedSession> {
  const lockKey = random.integer(1, LOCK_KEY_MAX);
  const connection: Database = await openSession(() => onLost(connection));
  try {
    await takeLivenessLock(connection, lockKey);
  } catch (error) {
    await connection.end();
    throw error;
  }
  return { connection, lockKey };
}
