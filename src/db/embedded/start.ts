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
  /** Connects as the service's role, which owns nothing and has the privileges granted by `grantToService`. */
  connection: EmbeddedConnection;
  /** Connects as the superuser, who owns everything: only for the migrations and their grants. */
  ownerConnection: EmbeddedConnection;
  /** True: a server was already running (started by another process of ours, or left by a killed one). */
  adopted: boolean;
  /** For how long a supervised server has been down, in milliseconds; 0: it is running, or is not supervised. */
  goneForMs(): number;
  /** Stops using the server; its last user stops it. */
  stop(): Promise<void>;
};

const databaseName = "latchkey";

/**
 * Starts a PostgreSQL server for this data folder, or uses the one that is already running: with its data in `dataDir`, durable,
 * and reachable only over a unix socket. Any number of processes may call this at once. With `watch`, for long-running processes,
 * it is restarted if it ends unexpectedly. Throws an Error whose message says what to do. docs/decisions/0002.
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

/** Creates what a server needs besides its cluster, at each start, because an earlier one may have been interrupted. */
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
        "Does that process have a temporary directory of its own (systemd: PrivateTmp)? Run this command in the same environment.",
    );
  }
  log("The embedded PostgreSQL is running but has lost its socket: restarting it");
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
    // There is no registered user that would stop it. If it is still recovering it keeps running, and the next start finds it.
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
    log(`The embedded PostgreSQL keeps running: process ${others.join(", ")} uses it`);
    return;
  }
  await stopServer(clusterPath(folder));
  removeSocketFolder(folder);
  log("The embedded PostgreSQL has stopped");
}
