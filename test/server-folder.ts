import { accessSync, constants, statfsSync } from "node:fs";
import { tmpdir } from "node:os";

const MEMORY = "/dev/shm";

/**
 * What the databases of a whole run take at most, with room to spare; a large backup (backups/move) has its rows in two databases, with indexes
 * and logs.
 */
const BYTES_MIN = 4 * 2 ** 30 + 10 * Number(process.env["LATCHKEY_BACKUP_MB"] ?? 0) * 2 ** 20;

/**
 * Where the PostgreSQL of the tests keeps its data: in memory where there is room, so that nobody waits for a disk. It cannot run
 * with `fsync=off` instead, because the product refuses such a server. Tests of durability start one of their own on the disk.
 */
export function serverFolder(): string {
  try {
    accessSync(MEMORY, constants.W_OK);
    const { bavail, bsize } = statfsSync(MEMORY);
    return bavail * bsize >= BYTES_MIN ? MEMORY : tmpdir();
  } catch {
    return tmpdir();
  }
}
