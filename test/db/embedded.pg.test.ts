import assert from "node:assert/strict";
import type { ChildProcess } from "node:child_process";
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { createInterface } from "node:readline";
import { after, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { isRunning } from "#lib/process-mark.ts";
import type { EmbeddedConnection, EmbeddedPostgres } from "#db/embedded/start.ts";
import { startEmbeddedPostgres } from "#db/embedded/start.ts";
import { assertDurable } from "#db/connection/durable.ts";
import { openPool } from "#db/connection/pool.ts";

const projectFolder = resolve(import.meta.dirname, "../..");
const made: string[] = [];
const children: ChildProcess[] = [];

after(async () => {
  for (const child of children) child.kill("SIGKILL");
  for (const folder of made) {
    if (existsSync(join(folder, "postgres/postmaster.pid")))
      await (await startEmbeddedPostgres({ dataDir: folder })).stop();
    rmSync(folder, { recursive: true, force: true });
  }
});

/** mkdtemp makes the parent 0700: as root, every test here runs in a folder `nobody` can't enter. */
function dataFolder(): string {
  const parent = mkdtempSync(join(tmpdir(), "latchkey-embedded-"));
  made.push(parent, join(parent, "data"));
  return join(parent, "data");
}

let prepared: string | null = null;

/** As dataFolder, with a cluster in it that was made once for all tests whose subject is not how it is made. */
async function usedDataFolder(): Promise<string> {
  if (prepared === null) {
    prepared = dataFolder();
    await (await startEmbeddedPostgres({ dataDir: prepared })).stop();
  }
  const copy = dataFolder();
  // Its owners and modes as well: PostgreSQL refuses a cluster of another user.
  execFileSync("cp", ["-a", prepared, copy]);
  return copy;
}

async function query<T>(connection: EmbeddedConnection, text: string): Promise<T[]> {
  const db = openPool(connection, { applicationName: "embedded-test", connectTimeoutMs: 20_000 });
  try {
    return await db.query<T>(text);
  } finally {
    await db.end();
  }
}

type Started = Omit<EmbeddedPostgres, "stop">;

/** Another process of ours: starts the server, says so, and stops when told. */
async function startInChild(
  dataDir: string,
): Promise<{ child: ChildProcess; started: Started; stop(): Promise<void> }> {
  const script = `
    import { startEmbeddedPostgres } from "#db/embedded/start.ts";
    const server = await startEmbeddedPostgres({ dataDir: process.env.DATA });
    console.log(JSON.stringify(server));
    process.stdin.on("data", async () => { await server.stop(); process.exit(0); });
  `;
  const child = spawn(process.execPath, ["--input-type=module", "--eval", script], {
    cwd: projectFolder,
    env: { ...process.env, DATA: dataDir },
    stdio: ["pipe", "pipe", "inherit"],
    detached: true,
  });
  children.push(child);
  const [line] = (await once(createInterface(child.stdout), "line")) as [string];
  const stop = async (): Promise<void> => {
    child.stdin.write("stop\n");
    const [code] = (await once(child, "exit")) as [number | null];
    assert.equal(code, 0);
  };
  return { child, started: JSON.parse(line) as Started, stop };
}

function postmasterPid(dataDir: string): number | null {
  const path = join(dataDir, "postgres/postmaster.pid");
  return existsSync(path) ? Number(readFileSync(path, "utf8").split("\n")[0]) : null;
}

function modeOf(path: string): number {
  return statSync(path).mode & 0o777;
}

async function killHard(pid: number): Promise<void> {
  process.kill(pid, "SIGKILL");
  await gone(pid);
}

/** A server that has ended stays a zombie until the process that started it has taken its exit: gone all the same. */
async function gone(pid: number): Promise<void> {
  for (let waited = 0; waited < 1_000 && isRunning(pid); waited += 1) await sleep(10);
  assert.ok(!isRunning(pid), `process ${pid} still runs`);
}

test("starts a durable server, for its owner alone, on no TCP port, and stops it", async () => {
  const dataDir = dataFolder();
  const server = await startEmbeddedPostgres({ dataDir });
  const pid = postmasterPid(dataDir);
  assert.ok(pid !== null);
  const db = openPool(server.connection, { applicationName: "embedded-test" });
  await assertDurable(db);
  const settings = await db.query<{ name: string; setting: string }>(
    `select name, setting from pg_settings where name in ('listen_addresses', 'fsync', 'synchronous_commit', 'full_page_writes',
       'max_connections', 'log_parameter_max_length_on_error', 'log_error_verbosity', 'server_encoding', 'TimeZone', 'data_checksums')`,
  );
  assert.deepEqual(Object.fromEntries(settings.map(({ name, setting }) => [name, setting])), {
    TimeZone: "UTC",
    data_checksums: "on",
    fsync: "on",
    full_page_writes: "on",
    listen_addresses: "",
    log_error_verbosity: "terse",
    log_parameter_max_length_on_error: "0",
    max_connections: "200",
    server_encoding: "UTF8",
    synchronous_commit: "on",
  });
  await db.end();

  assert.deepEqual(tcpSocketsOf(pid), []);
  for (const path of [dataDir, join(dataDir, "postgres"), server.connection.host])
    assert.equal(modeOf(path), 0o700, path);
  for (const name of ["postgres-password", "postgres-app-password", "postgres.log", "postgres-socket"])
    assert.equal(modeOf(join(dataDir, name)), 0o600, name);
  assert.ok(!readFileSync(`/proc/${pid}/cmdline`, "utf8").includes(server.ownerConnection.password));

  await assert.rejects(query({ ...server.connection, password: "wrong" }, "select 1"), { code: "28P01" });
  await server.stop();
  await server.stop();
  assert.equal(postmasterPid(dataDir), null);
  await gone(pid);
  assert.ok(!existsSync(server.connection.host));
});

/** Inodes of the process's sockets that /proc lists as TCP. */
function tcpSocketsOf(pid: number): string[] {
  const links = readdirSync(`/proc/${pid}/fd`).map((name) => readlinkSync(`/proc/${pid}/fd/${name}`));
  const inodes = links.flatMap((link) => /^socket:\[(\d+)\]$/.exec(link)?.[1] ?? []);
  assert.ok(inodes.length > 0, "the unix socket at least");
  const tcp = ["tcp", "tcp6"].flatMap((name) => readFileSync(`/proc/net/${name}`, "utf8").split("\n"));
  const listed = new Set(tcp.map((line) => line.trim().split(/\s+/)[9]));
  return inodes.filter((inode) => listed.has(inode));
}

test("keeps its data, its password and its case rules over a restart", async () => {
  const dataDir = await usedDataFolder();
  const first = await startEmbeddedPostgres({ dataDir });
  assert.equal(first.adopted, false);
  await query(first.ownerConnection, "create table kept as select 'Grüße' as word");
  await first.stop();
  const second = await startEmbeddedPostgres({ dataDir });
  assert.equal(second.adopted, false);
  assert.deepEqual(await query(second.ownerConnection, "select word, upper(word) as upper from kept"), [
    { word: "Grüße", upper: "GRÜßE" },
  ]);
  assert.equal(second.connection.password, first.connection.password);
  assert.equal(second.ownerConnection.password, first.ownerConnection.password);
  await second.stop();
});

test("another process uses the running server, and the last to leave stops it", async () => {
  const dataDir = await usedDataFolder();
  const service = await startInChild(dataDir);
  const pid = postmasterPid(dataDir);
  const command = await startEmbeddedPostgres({ dataDir });
  assert.deepEqual([service.started.adopted, command.adopted], [false, true]);
  await command.stop();
  assert.equal(postmasterPid(dataDir), pid, "a command that leaves does not stop the service's server");

  const last = await startEmbeddedPostgres({ dataDir });
  await service.stop();
  assert.deepEqual(await query(last.connection, "select 1 as one"), [{ one: 1 }]);
  await last.stop();
  assert.equal(postmasterPid(dataDir), null);
});

test("two uses in one process count as two", async () => {
  const dataDir = await usedDataFolder();
  const [first, second] = await Promise.all([
    startEmbeddedPostgres({ dataDir }),
    startEmbeddedPostgres({ dataDir }),
  ]);
  await first.stop();
  assert.deepEqual(await query(second.connection, "select 1 as one"), [{ one: 1 }]);
  await second.stop();
  assert.equal(postmasterPid(dataDir), null);
});

test("a server left by a killed process is taken over, with what it acknowledged", async () => {
  const dataDir = await usedDataFolder();
  const service = await startInChild(dataDir);
  const pid = postmasterPid(dataDir);
  await query(service.started.ownerConnection, "create table kept as select generate_series(1, 100) as n");
  await killHard(Number(service.child.pid));
  const next = await startEmbeddedPostgres({ dataDir });
  assert.equal(next.adopted, true);
  assert.equal(postmasterPid(dataDir), pid);
  assert.deepEqual(await query(next.ownerConnection, "select count(*) from kept"), [{ count: 100 }]);
  await next.stop();
  assert.equal(postmasterPid(dataDir), null, "the killed process does not count as a user");
});

test("after the server itself was killed, the next start recovers what it acknowledged", async () => {
  const dataDir = await usedDataFolder();
  const service = await startInChild(dataDir);
  await query(service.started.ownerConnection, "create table kept as select generate_series(1, 100) as n");
  const server = Number(postmasterPid(dataDir));
  await killHard(server);
  await killHard(Number(service.child.pid));
  // PostgreSQL takes a zombie for a server that runs: wait until it has been reaped.
  for (let waited = 0; waited < 1_000 && existsSync(`/proc/${server}`); waited += 1) await sleep(10);
  const next = await startEmbeddedPostgres({ dataDir });
  assert.equal(next.adopted, false);
  assert.deepEqual(await query(next.ownerConnection, "select count(*) from kept"), [{ count: 100 }]);
  await next.stop();
});

test("four processes that start at once get one server", async () => {
  const dataDir = dataFolder();
  const all = await Promise.all([1, 2, 3, 4].map(() => startInChild(dataDir)));
  assert.equal(all.filter(({ started }) => !started.adopted).length, 1);
  assert.equal(new Set(all.map(({ started }) => JSON.stringify(started.connection))).size, 1);
  const pid = postmasterPid(dataDir);
  await Promise.all(all.slice(1).map((each) => each.stop()));
  assert.equal(postmasterPid(dataDir), pid);
  await all[0]?.stop();
  assert.equal(postmasterPid(dataDir), null);
});

test("Ctrl-C and a SIGTERM to the process group do not reach the server", async () => {
  const dataDir = await usedDataFolder();
  const service = await startInChild(dataDir);
  const pid = postmasterPid(dataDir);
  process.kill(-Number(service.child.pid), "SIGINT");
  await once(service.child, "exit");
  await sleep(300);
  const next = await startEmbeddedPostgres({ dataDir });
  assert.equal(next.adopted, true);
  assert.equal(postmasterPid(dataDir), pid);
  await next.stop();
});

test("a lock left by a killed process does not block", async () => {
  const dataDir = await usedDataFolder();
  mkdirSync(join(dataDir, "postgres-lock"), { recursive: true });
  writeFileSync(join(dataDir, "postgres-lock/41"), JSON.stringify({ pid: 2 ** 22 + 1, startedAt: "" }));
  // Our own pid, but of an earlier process that had it.
  writeFileSync(
    join(dataDir, "postgres-lock/42"),
    JSON.stringify({ pid: process.pid, startedAt: "another-boot/1" }),
  );
  const server = await startEmbeddedPostgres({ dataDir });
  await server.stop();
  assert.equal(server.adopted, false);
});

test("a vanished socket folder is made anew, for a stopped server and for one that runs", async () => {
  const dataDir = await usedDataFolder();
  const first = await startEmbeddedPostgres({ dataDir });
  const firstPid = postmasterPid(dataDir);
  // As if a process was killed and then the temporary directory was cleaned.
  for (const name of readdirSync(join(dataDir, "postgres-users")))
    rmSync(join(dataDir, "postgres-users", name));
  rmSync(first.connection.host, { recursive: true });
  const second = await startEmbeddedPostgres({ dataDir });
  assert.equal(second.adopted, false);
  assert.notEqual(second.connection.host, first.connection.host);
  assert.notEqual(postmasterPid(dataDir), firstPid);

  await killHard(Number(postmasterPid(dataDir)));
  await second.stop();
  rmSync(second.connection.host, { recursive: true, force: true });
  const third = await startEmbeddedPostgres({ dataDir });
  assert.deepEqual(await query(third.connection, "select 1 as one"), [{ one: 1 }]);
  await third.stop();
});

test("a pid file whose pid is now another process (a restarted container) does not block", async () => {
  const dataDir = await usedDataFolder();
  const first = await startEmbeddedPostgres({ dataDir });
  const pidFile = join(dataDir, "postgres/postmaster.pid");
  const text = readFileSync(pidFile, "utf8");
  const bystander = spawn("/bin/sleep", ["60"]);
  children.push(bystander);
  await killHard(Number(postmasterPid(dataDir)));
  await first.stop();
  writeFileSync(pidFile, text.replace(/^\d+/, String(bystander.pid)));
  const second = await startEmbeddedPostgres({ dataDir });
  assert.equal(second.adopted, false);
  await second.stop();
  assert.equal(bystander.exitCode ?? bystander.signalCode, null, "the other process is left alone");
});

test("what can't work is said with the place and the remedy", async () => {
  const dataDir = await usedDataFolder();
  const server = await startEmbeddedPostgres({ dataDir });
  await server.stop();

  const configuration = join(dataDir, "postgres/postgresql.conf");
  const text = readFileSync(configuration, "utf8");
  writeFileSync(configuration, `${text}\nno_such_setting = 1\n`);
  await assert.rejects(
    startEmbeddedPostgres({ dataDir }),
    /did not start: it ended with exit code 1[^]*no_such_setting[^]*postgres\.log/,
  );
  writeFileSync(configuration, text);

  writeFileSync(join(dataDir, "postgres/PG_VERSION"), "17\n");
  await assert.rejects(
    startEmbeddedPostgres({ dataDir }),
    /was created by PostgreSQL 17; this program includes PostgreSQL 18[^]*DATABASE_URL/,
  );
  writeFileSync(join(dataDir, "postgres/PG_VERSION"), "18\n");

  const password = readFileSync(join(dataDir, "postgres-password"));
  rmSync(join(dataDir, "postgres-password"));
  await assert.rejects(
    startEmbeddedPostgres({ dataDir }),
    /password of the embedded PostgreSQL is missing: .*postgres-password/,
  );
  writeFileSync(join(dataDir, "postgres-password"), "another", { mode: 0o600 });
  await assert.rejects(
    startEmbeddedPostgres({ dataDir }),
    /does not accept the password in postgres-password/,
  );
  assert.equal(postmasterPid(dataDir), null, "a start that failed leaves no server behind");
  writeFileSync(join(dataDir, "postgres-password"), password, { mode: 0o600 });
  const again = await startEmbeddedPostgres({ dataDir });
  await again.stop();

  await assert.rejects(
    startEmbeddedPostgres({ dataDir: join(configuration, "data") }),
    /can't be used: .*postgresql\.conf.*ENOTDIR.*LATCHKEY_DATA_DIR/,
  );
});

test("an initdb that was cut short leaves nothing in the way", async () => {
  const dataDir = dataFolder();
  mkdirSync(join(dataDir, "postgres.new/base"), { recursive: true });
  writeFileSync(join(dataDir, "postgres.new/PG_VERSION"), "18\n");
  const server = await startEmbeddedPostgres({ dataDir });
  assert.deepEqual(await query(server.connection, "select 1 as one"), [{ one: 1 }]);
  await server.stop();
  assert.ok(!existsSync(join(dataDir, "postgres.new")));
});
