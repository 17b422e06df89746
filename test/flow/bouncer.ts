import { spawn, type ChildProcess } from "node:child_process";
import { chmodSync, mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { SESSION_TIMEOUTS_MS, type Database } from "#db/connection/pool.ts";
import { placesIn, unpackDebian, whyNoDebian } from "../debian-packages.ts";
import { until } from "../eventually.ts";
import { freePort } from "../free-port.ts";

/** Why there is no PgBouncer here; null: there is one. */
export const whyNoBouncer = whyNoDebian;

/** Debian's PgBouncer before a PostgreSQL server. */
export interface Bouncer extends AsyncDisposable {
  /** The database and role of the given URL, through the pooler. */
  readonly url: string;
  /** Ends it at once, with all connections, and starts it again at its port. */
  restart(): Promise<void>;
}

/** `settings`: of the section `pgbouncer`, in place of those of docs/database.md. */
export async function startBouncer(
  connectionString: string,
  settings: Readonly<Record<string, string | number>> = {},
): Promise<Bouncer> {
  const root = await unpackDebian({
    name: "pgbouncer",
    what: "PgBouncer, the pooler of the tests,",
    from: [{ suite: "trixie", packages: PACKAGES, withDependencies: false }],
    instead: "Is a Debian mirror reachable?",
  });
  const folder = mkdtempSync(join(tmpdir(), "latchkey-pgbouncer-"));
  // It refuses to run as root, and the server's socket lets only its own user in.
  chmodSync(folder, 0o755);
  const port = await freePort();
  const config = writeConfig(folder, new URL(connectionString), port, settings);
  const { loader, libraries } = placesIn(root);
  let child: ChildProcess | null = null;
  const start = async (): Promise<void> => {
    let said = "";
    const program = [loader, "--library-path", libraries, join(root, "usr/sbin/pgbouncer"), config];
    const { prefix, ...user } = userOf(new URL(connectionString));
    const [file = loader, ...rest] = [...prefix, ...program];
    const started = spawn(file, rest, { cwd: "/", stdio: ["ignore", "ignore", "pipe"], env: {}, ...user });
    child = started;
    started.stderr?.setEncoding("utf8").on("data", (text: string) => (said += text));
    await until("PgBouncer listens", async () => {
      if (started.exitCode !== null) throw new Error(`PgBouncer ended with ${started.exitCode}:\n${said}`);
      return await isListening(port);
    });
  };
  const end = async (): Promise<void> => {
    const ending = child;
    child = null;
    if (ending === null || ending.exitCode !== null || ending.signalCode !== null) return;
    const gone = new Promise((resolve) => ending.once("close", resolve));
    ending.kill("SIGKILL");
    await gone;
  };
  await start();
  const url = new URL(connectionString);
  url.host = `127.0.0.1:${port}`;
  return {
    url: url.href,
    restart: async () => {
      await end();
      await start();
    },
    [Symbol.asyncDispose]: async () => {
      await end();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** As docs/database.md#behind-pgbouncer has it, for the role and database of this connection. */
export async function limitSessions(db: Database): Promise<void> {
  const [found] = await db.query<{ role: string; database: string }>(
    `select quote_ident(current_user) as role, quote_ident(current_database()) as database`,
  );
  for (const [name, ms] of Object.entries(SESSION_TIMEOUTS_MS))
    await db.query(`alter role ${found?.role} in database ${found?.database} set ${name} = '${ms}ms'`);
}

/** With all that its program needs down to the C library; what Debian's set-up of a service needs (Perl, other PostgreSQL tools) is left out. */
const PACKAGES = [
  "pgbouncer",
  "libaudit1",
  "libc6",
  "libcap-ng0",
  "libcap2",
  "libcares2",
  "libevent-2.1-7t64",
  "libpam0g",
  "libssl3t64",
  "libsystemd0",
  "libzstd1",
  "zlib1g",
];

function writeConfig(
  folder: string,
  { hostname, port: serverPort, username, password }: URL,
  port: number,
  settings: Readonly<Record<string, string | number>>,
): string {
  const users = join(folder, "users.txt");
  const quoted = [username, password].map((text) => `"${decodeURIComponent(text).replaceAll('"', '""')}"`);
  writeFileSync(users, `${quoted.join(" ")}\n`);
  const all = {
    listen_addr: "127.0.0.1",
    listen_port: port,
    unix_socket_dir: "",
    auth_type: "scram-sha-256",
    auth_file: users,
    pool_mode: "transaction",
    default_pool_size: POOL_SIZE,
    max_prepared_statements: 200,
    // Otherwise it waits for 15 s after a server that was away.
    server_login_retry: 1,
    ...settings,
  };
  const lines = Object.entries(all).map(([name, value]) => `${name} = ${value}`);
  const config = join(folder, "pgbouncer.ini");
  const host = decodeURIComponent(hostname);
  writeFileSync(
    config,
    `[databases]\n* = host=${host} port=${serverPort || 5432}\n[pgbouncer]\n${lines.join("\n")}\n`,
  );
  return config;
}

/** Connections to the server, fewer than one service has for itself. */
export const POOL_SIZE = 8;

/** The user of the server, as nobody else may use its socket: another one, or root's `nobody` in a user namespace. */
function userOf({ hostname, port }: URL): {
  readonly prefix: readonly string[];
  readonly uid?: number;
  readonly gid?: number;
} {
  const folder = decodeURIComponent(hostname);
  if (process.getuid?.() !== 0) return { prefix: [] };
  if (!folder.startsWith("/")) return { prefix: [], uid: NOBODY, gid: NOBODY };
  const { uid, gid } = statSync(join(folder, `.s.PGSQL.${port || 5432}`));
  if (uid !== 0) return { prefix: [], uid, gid };
  return {
    prefix: ["/usr/bin/unshare", "--user", `--map-user=${NOBODY}`, `--map-group=${NOBODY}`, "--"],
  };
}

const NOBODY = 65_534;

async function isListening(port: number): Promise<boolean> {
  const socket = connect(port, "127.0.0.1");
  return await new Promise<boolean>((resolve) => {
    socket.once("connect", () => resolve(true));
    socket.once("error", () => resolve(false));
  }).finally(() => socket.destroy());
}
