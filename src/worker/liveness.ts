import { randomInt } from "node:crypto";
import { hostname } from "node:os";
import { openSession, type Database, type DatabaseSource } from "#db/pool.ts";
import { beat, deleteWorker, insertWorker, savePoolIds, takeLivenessLock } from "#db/workers.ts";
import { ID_PREFIX } from "#domain/ids.ts";
import { limits } from "#domain/limits.ts";
import { describeError, type Log } from "#lib/log.ts";
import type { SelfFence } from "#engine/self-fence.ts";
import { newId } from "#lib/new-id.ts";

const LOCK_KEY_MAX = 2 ** 48 - 1;

/** One membership among the workers: a row, a session advisory lock on a connection of its own, and a heartbeat. */
export interface Membership {
  readonly workerId: string;
  leave(): Promise<void>;
}

/**
 * Joins the workers. `onLost` is told once when the membership is over without our doing: the connection broke or another
 * process took over. Its runs are others' from then on.
 */
export async function join(
  db: Database,
  source: DatabaseSource,
  poolIds: readonly string[],
  log: Log,
  fence: SelfFence,
  onLost: () => void,
): Promise<Membership> {
  const workerId = newId(ID_PREFIX.worker);
  const lockKey = randomInt(1, LOCK_KEY_MAX);
  let over = false;
  const lose = (why: string): void => {
    if (over) return;
    over = true;
    clearInterval(heart);
    log.warn({ workerId }, why);
    onLost();
  };
  // The heart beats over the very connection that holds the lock: if it hangs, both end.
  const connection = await openSession(source, {
    applicationName: "latchkey liveness",
    onLost: () => lose("the liveness connection was lost"),
  });
  try {
    await takeLivenessLock(connection, lockKey);
    const sentAtMs = performance.now();
    await insertWorker(db, { id: workerId, lockKey, hostname: hostname(), pid: process.pid });
    fence.heard(workerId, sentAtMs);
    await savePoolIds(db, workerId, poolIds);
  } catch (error) {
    // It would stay open, with its lock, and keep the process from ending.
    await connection.end();
    throw error;
  }
  const heart = setInterval(() => {
    const sentAtMs = performance.now();
    beat(connection, workerId).then(
      (alive) => {
        if (alive) fence.heard(workerId, sentAtMs);
        else lose("another process took this worker's runs over");
      },
      (error: unknown) => log.warn(describeError(error), "a heartbeat failed"),
    );
  }, limits.heartbeatMs);
  return {
    workerId,
    leave: async () => {
      over = true;
      clearInterval(heart);
      await deleteWorker(db, workerId).catch(() => {});
      await connection.end();
    },
  };
}
