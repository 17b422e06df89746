import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { prepareVault, VaultSetupError } from "#actions/prepare-vault.ts";
import type { Services } from "#actions/services.ts";
import { openLocalStore } from "#blobs/local-store.ts";
import { startEmbeddedPostgres } from "#db/embedded/start.ts";
import { migrateJobs } from "#db/jobs.ts";
import { migrate } from "#db/migrate.ts";
import { assertDurable, openPool, type Database, type DatabaseSource } from "#db/pool.ts";
import type { EngineServices } from "#engine/services.ts";
import { openEvaluator } from "#expressions/evaluator.ts";
import { describeError, type Log } from "#lib/log.ts";
import { openSigning, readSigningKey } from "#lib/signing.ts";
import { openGate } from "#outbound/gate.ts";
import { readMasterKey, type MasterKey } from "#vault/master-key.ts";
import { Worker } from "#worker/worker.ts";
import type { Config } from "./config.ts";
import { openServer, type Server } from "./server.ts";

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
  const source: DatabaseSource = embedded?.connection ?? { connectionString: config.databaseUrl?.reveal() ?? "" };
  const db = openPool(source, { applicationName: "latchkey", log: (message) => log.warn(message) });
  const close = async (): Promise<void> => {
    await db.end();
    await embedded?.stop();
  };
  try {
    await assertDurable(db);
    await migrate(db, MIGRATIONS);
    await migrateJobs(db);
  } catch (error) {
    await close();
    throw error;
  }
  return { db, source, close };
}

export type Role = "api" | "worker";

/** What is missing to start, and how to make it. */
class StartRefused extends Error {
  override readonly name = "StartRefused";
}

/** Everything that the API, the pages and the commands work with. `publicUrl` is asked late: a port may be taken. */
async function openServices(
  config: Config,
  log: Log,
  database: OpenDatabase,
  masterKey: MasterKey | null,
  publicUrl: () => string,
): Promise<Services> {
  return {
    db: database.db,
    blobs: openLocalStore(join(config.dataDir, "objects")),
    signing: openSigning(readSigningKey(requireKey(config, "signing").reveal())),
    vault: await prepareVault(database.db, masterKey),
    log,
    publicUrl,
  };
}

/** The text of a key. Throws StartRefused when there is none. */
export function requireKey(config: Config, which: "signing" | "master") {
  const key = which === "signing" ? config.signingKey : config.masterKey;
  if (key) return key;
  const file = which === "signing" ? config.signingKeyFile : config.masterKeyFile;
  const name = `LATCHKEY_${which.toUpperCase()}_KEY`;
  throw new StartRefused(
    `There is no ${which} key: ${file} does not exist and ${name} is not set. ` +
      "Run `latchkey init` to make the data folder with its keys, or give the key that belongs to this database.",
  );
}

export interface RunningService {
  readonly url: string;
  /** Stops taking work, hands runs back, waits for requests under way, ends. At most the configured drain. */
  stop(): Promise<void>;
}

/** Starts the roles of one process. Stops what it had started when one of them can't. */
export async function startService(config: Config, log: Log, roles: readonly Role[]): Promise<RunningService> {
  requireKey(config, "signing");
  const masterKey = roles.includes("worker") ? readMasterKey(requireKey(config, "master").reveal()) : null;
  const closers: (() => Promise<unknown>)[] = [];
  const closeAll = async (): Promise<void> => {
    for (const close of closers.reverse()) {
      await close().catch((error: unknown) => log.error(describeError(error), "stopping a part failed"));
    }
  };
  try {
    const database = await openDatabase(config, log);
    closers.push(() => database.close());
    let server: Server | null = null;
    const publicUrl = (): string => config.publicUrl ?? server?.url ?? `http://${config.host}:${config.port}`;
    const services = await openServices(config, log, database, masterKey, publicUrl);
    if (roles.includes("worker")) closers.push(await startWorker(config, services, database));
    server = await openServer(services, { host: config.host, port: config.port, api: roles.includes("api") });
    const listening = server;
    closers.push(() => listening.close(config.drainMs));
    return { url: publicUrl(), stop: closeAll };
  } catch (error) {
    await closeAll();
    throw error;
  }
}

async function startWorker(config: Config, services: Services, database: OpenDatabase): Promise<() => Promise<void>> {
  if (!services.vault.canOpen) throw new VaultSetupError("The worker role needs the master key of this database.");
  const gate = openGate({ allow: config.egressAllow });
  const engine: EngineServices = {
    db: services.db,
    blobs: services.blobs,
    vault: services.vault,
    gate,
    expressions: openEvaluator({ threads: 1 }),
    loginExpressions: openEvaluator({ threads: 1 }),
    log: services.log,
    scratchFolder: join(config.dataDir, "scratch"),
  };
  const worker = await Worker.start(engine, database.source, config.workerConcurrency);
  return async () => {
    await worker.stop();
    await gate.close();
    await Promise.all([engine.expressions.close(), engine.loginExpressions.close()]);
  };
}
