import { execFile, spawn, type ChildProcess } from "node:child_process";
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import { placesIn, unpackDebian, whyNoDebian } from "../debian-packages.ts";
import { freePort } from "../free-port.ts";

/**
 * S3 for tests: Ceph's object gateway from Debian, with SQLite below it instead of a cluster. It checks signatures and their time
 * as the real one does, because it is one. Fetched once with apt (84 MB); its own C library comes along, so it runs anywhere.
 */
export interface ObjectGateway {
  readonly url: string;
  /** The AWS SDK's own settings. */
  readonly environment: Record<string, string>;
  /** Holds it so that it answers nothing, or lets it go on. */
  freeze(): void;
  thaw(): void;
  /** Ends it; its port refuses connections. */
  kill(): Promise<void>;
  /** The same again, with all that it had. */
  start(): Promise<void>;
  close(): Promise<void>;
}

export const whyNoGateway = whyNoDebian;

const execute = promisify(execFile);
const KEY = { id: "AKLATCHKEYTEST", secret: "gateway-secret-of-the-tests" };
const START_TRIES_MAX = 2_000;
const ADMIN_MS = 60_000;

export async function startGateway(): Promise<ObjectGateway> {
  const root = await unpackDebian({
    name: "radosgw",
    what: "Ceph's radosgw, the S3 server of the tests,",
    from: [{ suite: "trixie", packages: ["radosgw"], withDependencies: true }],
    instead: "Is a Debian mirror reachable?",
  });
  const folder = mkdtempSync(join(tmpdir(), "latchkey-radosgw-"));
  chmodSync(folder, 0o700);
  const port = await freePort();
  const url = `http://127.0.0.1:${port}`;
  const { loader, libraries } = placesIn(root);
  const config = writeConfig(folder, port, libraries);
  const run = ["--library-path", `${libraries}:${libraries}/ceph`];
  const common = ["-n", "client.rgw", "-c", config, "--no-mon-config"];
  const create = [
    ...[...run, join(root, "usr/bin/radosgw-admin"), ...common, "user", "create", "--uid=test"],
    ...["--display-name=Test", `--access-key=${KEY.id}`, `--secret=${KEY.secret}`],
  ];
  // Seen once: it made the user and did not end.
  await execute(loader, create, { timeout: ADMIN_MS, killSignal: "SIGKILL" }).catch(async () => {
    rmSync(folder, { recursive: true, force: true });
    mkdirSync(folder, { mode: 0o700 });
    writeConfig(folder, port, libraries);
    await execute(loader, create, { timeout: ADMIN_MS, killSignal: "SIGKILL" });
  });
  let child: ChildProcess | null = null;
  const start = async (): Promise<void> => {
    child = spawn(loader, [...run, join(root, "usr/bin/radosgw"), "-f", ...common], { stdio: "ignore" });
    for (let tries = 0; !(await answers(url)); tries++) {
      if (tries > START_TRIES_MAX || child.exitCode !== null) {
        child.kill("SIGKILL");
        throw new Error(`radosgw does not answer:\n${logOf(folder)}`);
      }
      await sleep(50);
    }
  };
  const kill = async (): Promise<void> => {
    const ending = child;
    child = null;
    if (ending === null || ending.exitCode !== null || ending.signalCode !== null) return;
    const gone = new Promise((resolve) => ending.once("close", resolve));
    ending.kill("SIGKILL");
    await gone;
  };
  await start();
  return {
    url,
    environment: { AWS_ACCESS_KEY_ID: KEY.id, AWS_SECRET_ACCESS_KEY: KEY.secret, AWS_REGION: "us-east-1" },
    freeze: () => child?.kill("SIGSTOP"),
    thaw: () => child?.kill("SIGCONT"),
    kill,
    start,
    close: async () => {
      await kill();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

function writeConfig(folder: string, port: number, libraries: string): string {
  mkdirSync(join(folder, "db"));
  const file = join(folder, "ceph.conf");
  writeFileSync(
    file,
    `[global]
auth_cluster_required = none
auth_service_required = none
auth_client_required = none
plugin_dir = ${libraries}/ceph
admin_socket =
run_dir = ${folder}
[client.rgw]
rgw_backend_store = dbstore
rgw_config_store = dbstore
dbstore_config_uri = file:${folder}/config.db
dbstore_db_dir = ${folder}/db
rgw_data = ${folder}/db
rgw_frontends = beast endpoint=127.0.0.1:${port}
log_file = ${folder}/rgw.log
`,
  );
  return file;
}

async function answers(url: string): Promise<boolean> {
  return await fetch(url).then(
    () => true,
    () => false,
  );
}

function logOf(folder: string): string {
  const file = join(folder, "rgw.log");
  return existsSync(file) ? readFileSync(file, "utf8").slice(-2_000) : "no log";
}
