import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { startEmbeddedPostgres } from "#db/embedded/start.ts";
import { migrate } from "#db/connection/migrate.ts";
import { openPool } from "#db/connection/pool.ts";
import { dumpSchema } from "./schema-dump.ts";

/** `src/db/migrations/schema.sql`: the result of the migrations in a real, empty PostgreSQL. Reviewed with each migration. */
export async function schemaSql(root: URL): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "latchkey-schema-"));
  const server = await startEmbeddedPostgres({ dataDir: folder });
  const db = openPool(server.ownerConnection, { applicationName: "latchkey schema", max: 1 });
  try {
    await migrate(db, fileURLToPath(new URL("src/db/migrations", root)));
    return await dumpSchema(db);
  } finally {
    await db.end();
    await server.stop();
    await rm(folder, { recursive: true, force: true });
  }
}
