import { fileURLToPath } from "node:url";
import { startEmbeddedPostgres } from "#db/embedded/start.ts";
import { migrateJobs } from "#db/jobs.ts";
import { migrate } from "#db/migrate.ts";
import { assertDurable } from "#db/durable.ts";
import { openPool, type Database, type DatabaseSource } from "#db/pool.ts";
import type { Log } from "#lib/log.ts";
import { StartRefused, type Config } from "./config.ts";

const MIGRATIONS = fileURLToPath(new URL("../migrations", import.meta.url));

/** A database that is up to date, and the way to it. */
export interface OpenDatabase {
  readonly db: Database;
  readonly source: DatabaseSource;
  close(): Promise<void>;
}

/** DATABASE_URL, or the embedded PostgreSQL of the data folder; migrated. Safe when several processes do it at once. */
export async function openDatabase(config: Config, log: Log): Promise<OpenDatabase> {
  const embedded = config.databaseUrl
    ? null
    : await startEmbeddedPostgres({ dataDir: config.dataDir, log: (message) => log.debug(message) });
  const source: DatabaseSource = embedded?.connection ?? {
    connectionString: config.databaseUrl?.reveal() ?? "",
  };
  const db = openPool(source, { applicationName: "latchkey", log: (message) => log.warn(message) });
  const close = async (): Promise<void> => {
    await db.end();
    await embedded?.stop();
  };
  try {
    if (!embedded) await reach(db);
    await assertDurable(db);
    await migrate(db, MIGRATIONS);
    await migrateJobs(db);
  } catch (error) {
    await close();
    throw error;
  }
  return { db, source, close };
}

/** The first connection to a server of somebody else: what most often is wrong, in one sentence. */
async function reach(db: Database): Promise<void> {
  try {
    await db.query("select 1");
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    // Several addresses of one name fail together, with a code and no message.
    const reason = [message, code].filter((text) => text !== undefined && text !== "").join(", ");
    throw new StartRefused(
      `The database of DATABASE_URL can't be opened (${reason || "unknown reason"}). Is the server up, and are host, port, ` +
        "user, password and database name right? With DATABASE_URL unset, the embedded PostgreSQL is used.",
    );
  }
}
