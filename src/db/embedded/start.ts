import { resolve } from "node:path";
import { packagedBinaries, readyBinaries } from "./binaries.ts";
import type { Cluster } from "./cluster.ts";
import { clusterPath, openCluster, readPassword, roleName } from "./cluster.ts";
import type { DataFolder } from "./data-folder.ts";
import { openDataFolder } from "./data-folder.ts";
import { ensureDatabase, type Address } from "./first-connection.ts";
import { withFolderLock } from "./folder-lock.ts";
import { findPostmaster } from "./postmaster-file.ts";
import { awaitRunning, startServer, stopServer } from "./server.ts";
import { chooseServerUser } from "./server-user.ts";
import { ensureServiceRole } from "./service-role.ts";
import { openSocketFolder, port, removeSocketFolder } from "./socket-folder.ts";
import { leave, liveUsers, register } from "./users.ts";
import { watchServer, type WatchOptions } from "./watch.ts";

/** `host` is the folder of the unix socket. */
export type EmbeddedConnection = {
  host: string;
  port: number;
  user: string;
  password: string;
  database: string;
};

export type EmbeddedPostgres = {
  /** As the service's role, which owns nothing and may do what `grantToService` has granted. */
  connection: EmbeddedConnection;
  /** As the superuser, who owns everything: for the migrations and their grants alone. */
  ownerConnection: EmbeddedConnection;
  /** True: a server was running already (another process of ours, or one left by a killed process). */
  adopted: boolean;
  /** For how long a watched server has not run, in milliseconds; 0: it runs, or nobody watches it. */
  goneForMs(): number;
  /** Leaves the server; the last live user of it stops it. */
  stop(): Promise<void>;
};

const databaseName = "latchkey";

/**
 * The real PostgreSQL of a machine without one: in `dataDir`, over a unix socket only, durable.
 * Starts it, or takes over the one that runs; any number of processes may call this at once.
 * With `watch` it is started again when it ends without our doing: for what lives long.
 * Throws an Error whose message says what to do. docs/decisions/0002.
 */
export async function startEmbeddedPostgres(options: {
  dataDir: string;
  log?: ((message: string) => void) | undefined;
  watch?: WatchOptions | undefined;
}): Promise<EmbeddedPostgres> {
  const log = options.log ?? (() => {});
  const folder = openDataFolder(resolve(options.dataDir));
  return withFolderLock(folder, async () => {
    const adopted = await adopt(folder, log);
    const { service, owner } = adopted ?? (await start(folder, log));
    const use = register(folder);
    const path = clusterPath(folder);
    const startAgain = async (): Promise<void> =>
      await withFolderLock(folder, async () => {
        const again = (await adopt(folder, log)) ?? (await start(folder, log));
        if (again.service.host !== service.host)
          throw new Error(
            `The embedded PostgreSQL runs at another socket (${again.service.host}): the temporary directory was cleared. Start again.`,
          );
      });
    const watch =
      options.watch && watchServer(() => findPostmaster(path).kind === "running", startAgain, options.watch);
    let stopping: Promise<void> | null = null;
    const end = async (): Promise<void> => {
      await watch?.stop();
      await withFolderLock(folder, () => leaveServer(folder, use, log));
    };
    const stop = (): Promise<void> => (stopping ??= end());
    return {
      connection: { ...service, database: databaseName },
      ownerConnection: { ...owner, database: databaseName },
      adopted: adopted !== null,
      goneForMs: () => watch?.goneForMs() ?? 0,
      stop,
    };
  });
}

type Server = { service: Address; owner: Address };

/** What a server needs besides its cluster; each start looks, as one before may have been cut off. */
async function ready(folder: DataFolder, owner: Address): Promise<Server> {
  await ensureDatabase(owner, databaseName);
  return { service: await ensureServiceRole(folder, owner, databaseName), owner };
}

async function adopt(folder: DataFolder, log: (message: string) => void): Promise<Server | null> {
  const path = clusterPath(folder);
  if (findPostmaster(path).kind !== "running") return null;
  const cluster: Cluster = { path, user: roleName, password: readPassword(folder) };
  const running = await awaitRunning(cluster);
  if (running === "ended") return null;
  if (running !== "unreachable") {
    log(`Using the embedded PostgreSQL that already runs (process ${running.pid})`);
    return await ready(folder, {
      host: running.socketFolder,
      port: running.port,
      user: cluster.user,
      password: cluster.password,
    });
  }
  const users = liveUsers(folder);
  if (users.length > 0) {
    throw new Error(
      `The embedded PostgreSQL in ${folder.path} is in use by process ${users.join(", ")}, but its socket can't be reached from here. ` +
        "Does that process have a temporary directory of its own (systemd: PrivateTmp)? Run this command in the same surroundings.",
    );
  }
  log("The embedded PostgreSQL runs but has lost its socket: starting it anew");
  await stopServer(path);
  return null;
}

async function start(folder: DataFolder, log: (message: string) => void): Promise<Server> {
  const native = packagedBinaries();
  const { user, binaries } = await chooseServerUser(folder, readyBinaries(native, folder), native);
  const socketFolder = openSocketFolder(folder, user);
  const cluster = await openCluster(folder, user, binaries, socketFolder);
  let server: Server;
  try {
    await startServer(folder, cluster, user, binaries, socketFolder, log);
    server = await ready(folder, {
      host: socketFolder,
      port,
      user: cluster.user,
      password: cluster.password,
    });
  } catch (error) {
    // Nobody is registered as its user who would stop it. One that still recovers goes on: the next start finds it.
    const found = findPostmaster(cluster.path);
    if (found.kind === "running" && found.postmaster.state === "ready") await stopServer(cluster.path);
    throw error;
  }
  log(`The embedded PostgreSQL runs in ${folder.path} as ${user.name}`);
  return server;
}

async function leaveServer(folder: DataFolder, use: string, log: (message: string) => void): Promise<void> {
  leave(folder, use);
  const others = liveUsers(folder);
  if (others.length > 0) {
    log(`The embedded PostgreSQL goes on: process ${others.join(", ")} uses it`);
    return;
  }
  await stopServer(clusterPath(folder));
  removeSocketFolder(folder);
  log("The embedded PostgreSQL has stopped");
}
