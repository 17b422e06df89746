import { assert } from "#lib/assert.ts";
import type { Database } from "./pool.ts";

/** The service refuses to start with a server that may lose acknowledged writes. docs/decisions/0002. */
export async function assertDurable(db: Database): Promise<void> {
  const [found] = await db.query<{
    version: number;
    versionText: string;
    fsync: string;
    synchronousCommit: string;
  }>(
    `select current_setting('server_version_num')::int as version, current_setting('server_version') as "versionText",
            current_setting('fsync') as fsync, current_setting('synchronous_commit') as "synchronousCommit"`,
  );
  assert(found !== undefined, "a select without a table returns one row");
  if (found.version < 150_000) {
    throw new Error(
      `The database is PostgreSQL ${found.versionText}; 15 or newer is needed. Upgrade it, or set DATABASE_URL to another.`,
    );
  }
  if (found.fsync === "off") {
    throw new Error(
      "The database runs with fsync=off: a crash of its machine can destroy it. Set fsync=on in postgresql.conf and reload it.",
    );
  }
  if (found.synchronousCommit === "off") {
    throw new Error(
      "The database runs with synchronous_commit=off: it acknowledges writes that a crash then loses. " +
        "Set synchronous_commit=on for the server, the database and the role of DATABASE_URL.",
    );
  }
}
