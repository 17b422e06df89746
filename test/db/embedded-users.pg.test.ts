import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import {
  accessSync,
  chmodSync,
  chownSync,
  constants,
  cpSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { after, test } from "node:test";
import { packagedBinaries, readyBinaries } from "#db/embedded/binaries.ts";
import { openDataFolder } from "#db/embedded/data-folder.ts";
import { startEmbeddedPostgres } from "#db/embedded/start.ts";

const projectFolder = resolve(import.meta.dirname, "../..");
const nobody = 65534;
const isRoot = process.getuid?.() === 0;
const onlyRoot = isRoot ? false : "needs root";
const made: string[] = [];

after(() => {
  for (const folder of made) rmSync(folder, { recursive: true, force: true });
});

/** 0700 and ours, as mkdtemp makes it. */
function privateParent(): string {
  const parent = mkdtempSync(join(tmpdir(), "latchkey-users-"));
  made.push(parent);
  return parent;
}

type Outcome = { code: number | null; output: string };

/** Starts the server, reports who runs it, writes a row, and stops it, in another process. */
function startAs(
  dataDir: string,
  as: { uid?: number; gid?: number } = {},
  prefix: readonly string[] = [],
): Promise<Outcome> {
  const script = `
    import { readFileSync, readlinkSync } from "node:fs";
    import { startEmbeddedPostgres } from "#db/embedded/start.ts";
    import { openPool } from "#db/connection/pool.ts";
    try {
      const server = await startEmbeddedPostgres({ dataDir: process.env.DATA });
      const pid = readFileSync(process.env.DATA + "/postgres/postmaster.pid", "utf8").split("\\n")[0];
      const uid = /^Uid:\\s+(\\d+)/m.exec(readFileSync("/proc/" + pid + "/status", "utf8"))[1];
      const exe = readlinkSync("/proc/" + pid + "/exe");
      const db = openPool(server.ownerConnection, { applicationName: "users-test" });
      await db.query("create table if not exists kept (n int)");
      const [row] = await db.query("with added as (insert into kept values (1) returning 1) select count(*) as n from kept");
      await db.end();
      await server.stop();
      console.log("uid=" + uid + " before=" + row.n + " exe=" + exe);
    } catch (error) {
      console.log("ERROR " + error.message);
      process.exitCode = 3;
    }
  `;
  const [file, ...args]: readonly string[] = [
    ...prefix,
    process.execPath,
    "--input-type=module",
    "--eval",
    script,
  ];
  return new Promise((done, failed) => {
    const child = spawn(file ?? process.execPath, args, {
      cwd: projectFolder,
      env: { ...process.env, DATA: dataDir },
      stdio: ["ignore", "pipe", "pipe"],
      ...as,
    });
    let output = "";
    child.stdout.on("data", (chunk) => (output += String(chunk)));
    child.stderr.on("data", (chunk) => (output += String(chunk)));
    child.on("error", failed);
    child.on("close", (code) => done({ code, output: output.trim() }));
  });
}

/** A machine without `unshare`: hidden by a mount that only this process tree sees. */
const withoutUnshare = [
  "/usr/bin/unshare",
  "--mount",
  "/bin/sh",
  "-c",
  'mount --bind /bin/false /usr/bin/unshare && exec "$@"',
  "sh",
];

const noMounts = await reason(
  onlyRoot,
  async () => {
    const probe = spawn("/usr/bin/unshare", [...withoutUnshare.slice(1), "/bin/true"], { stdio: "ignore" });
    return await new Promise<boolean>((done) =>
      probe.on("error", () => done(false)).on("close", (code) => done(code === 0)),
    );
  },
  "mounts can't be changed here",
);

const projectIsPrivate = await reason(
  onlyRoot,
  async () => {
    const probe = spawn(process.execPath, ["--version"], {
      uid: nobody,
      gid: nobody,
      cwd: "/",
      stdio: "ignore",
    });
    const runs = await new Promise<boolean>((done) =>
      probe.on("error", () => done(false)).on("close", (code) => done(code === 0)),
    );
    return runs && enterableByAll(projectFolder);
  },
  "an ordinary user can't read the project's folder",
);

async function reason(
  first: string | false,
  works: () => Promise<boolean>,
  otherwise: string,
): Promise<string | false> {
  if (first !== false) return first;
  return (await works()) ? false : otherwise;
}

function enterableByAll(path: string): boolean {
  return (statSync(path).mode & 0o005) === 0o005 && (dirname(path) === path || enterableByAll(dirname(path)));
}

test(
  "as root, under a folder that only root can enter, the server runs without root's rights",
  { skip: onlyRoot },
  async () => {
    const dataDir = join(privateParent(), "data");
    const server = await startEmbeddedPostgres({ dataDir });
    const pid = readFileSync(join(dataDir, "postgres/postmaster.pid"), "utf8").split("\n")[0];
    const status = readFileSync(`/proc/${pid}/status`, "utf8");
    const effective = BigInt(`0x${/^CapEff:\s+([0-9a-f]+)/m.exec(status)?.[1]}`);
    assert.equal(effective, 0n, "no capability");
    if (readlinkSync(`/proc/${pid}/ns/user`) !== readlinkSync("/proc/self/ns/user")) {
      assert.match(readFileSync(`/proc/${pid}/uid_map`, "utf8"), /^\s*65534\s+0\s+1\s*$/);
      assert.equal(statSync(join(dataDir, "postgres")).uid, 0, "no chown was needed");
    } else {
      assert.match(status, /^Uid:\s+65534/m);
    }
    assert.doesNotMatch(
      readFileSync(`/proc/${pid}/environ`, "utf8"),
      /HOME=|LATCHKEY/,
      "our environment may hold secrets",
    );
    await server.stop();
  },
);

test(
  "as root without user namespaces, the server runs as nobody, and goes on so after a restart",
  { skip: noMounts },
  async () => {
    const parent = privateParent();
    chmodSync(parent, 0o711);
    const dataDir = join(parent, "data");
    const first = await startAs(dataDir, {}, withoutUnshare);
    assert.match(first.output, /^uid=65534 before=0 exe=/);
    assert.equal(statSync(dataDir).mode & 0o777, 0o710, "nobody may enter, and not list");
    assert.equal(statSync(join(dataDir, "postgres-password")).mode & 0o777, 0o600);
    assert.match((await startAs(dataDir, {}, withoutUnshare)).output, /^uid=65534 before=1 /);
    assert.match(
      (await startAs(dataDir)).output,
      /^uid=0 before=2 /,
      "and where user namespaces work, in one again",
    );
  },
);

test(
  "as root without user namespaces, a folder that nobody can't enter is named",
  { skip: noMounts },
  async () => {
    const parent = privateParent();
    const { code, output } = await startAs(join(parent, "data"), {}, withoutUnshare);
    assert.equal(code, 3);
    assert.ok(output.includes(`who can't enter ${parent}. Choose a data folder`), output);
  },
);

test(
  "as root without user namespaces, a project that nobody can't enter is no obstacle",
  { skip: noMounts },
  async () => {
    const hidden = privateParent();
    const parent = privateParent();
    chmodSync(parent, 0o711);
    // The same project, seen under a 0700 folder.
    const moved = join(hidden, "project");
    mkdirSync(moved);
    const prefix = [
      ...withoutUnshare.slice(0, 4),
      `mount --bind ${projectFolder} ${moved} && mount --bind /bin/false /usr/bin/unshare && cd ${moved} && exec "$@"`,
      "sh",
    ];
    const { output } = await startAs(join(parent, "data"), {}, prefix);
    assert.match(output, /^uid=65534 before=0 exe=.*\/data\/postgres-bin\/[^/]+\/bin\/postgres$/);
  },
);

test("root leaves a data folder of an ordinary user to this user", { skip: projectIsPrivate }, async () => {
  const parent = privateParent();
  chmodSync(parent, 0o711);
  const dataDir = mkdtempSync(join(parent, "data-"));
  chownSync(dataDir, nobody, nobody);
  assert.match((await startAs(dataDir)).output, /^uid=65534 before=0 /);
  assert.match(
    (await startAs(dataDir, { uid: nobody, gid: nobody })).output,
    /^uid=65534 before=1 /,
    "who can use it afterwards",
  );
  assert.match((await startAs(dataDir)).output, /^uid=65534 before=2 /);
});

test("an ordinary user runs it as this user", { skip: isRoot ? projectIsPrivate : false }, async () => {
  const parent = privateParent();
  if (isRoot) chownSync(parent, nobody, nobody);
  const uid = isRoot ? nobody : must(process.getuid?.());
  const { output } = await startAs(join(parent, "data"), isRoot ? { uid, gid: nobody } : {});
  assert.match(output, new RegExp(`^uid=${uid} before=0 `));
});

test(
  "a user without a name (a container's --user) can run it where user namespaces work, else is told",
  { skip: projectIsPrivate },
  async () => {
    const parent = privateParent();
    chownSync(parent, 54_321, 54_321);
    const { code, output } = await startAs(join(parent, "data"), { uid: 54_321, gid: 54_321 });
    if (code === 0) assert.match(output, /^uid=54321 before=0 /);
    else assert.match(output, /could not look up effective user ID 54321[^]*DATABASE_URL/);
  },
);

test("a user is told when the data folder is someone else's", { skip: projectIsPrivate }, async () => {
  const parent = privateParent();
  chmodSync(parent, 0o755);
  const { code, output } = await startAs(join(parent, "data"), { uid: nobody, gid: nobody });
  assert.equal(code, 3);
  assert.match(output, /The data folder can't be used: .*data \(EACCES\)\. Run as the user it belongs to/);
});

test(
  "library links are made where the package can be written, else in a copy in the data folder",
  { skip: onlyRoot },
  async () => {
    const parent = privateParent();
    chmodSync(parent, 0o711);
    const native = join(parent, "package/native");
    cpSync(packagedBinaries(), native, {
      recursive: true,
      filter: (source) => !existsSync(source) || !lstatSync(source).isSymbolicLink(),
    });
    cpSync(join(packagedBinaries(), "../package.json"), join(parent, "package/package.json"));
    const link = join(native, "lib/libpq.so.5");
    assert.throws(() => accessSync(link, constants.F_OK));

    // As a user who may read the package and not write it.
    const dataDir = mkdtempSync(join(parent, "data-"));
    chownSync(dataDir, nobody, nobody);
    const script = `
    import { readyBinaries } from "#db/embedded/binaries.ts";
    import { openDataFolder } from "#db/embedded/data-folder.ts";
    import { execFileSync } from "node:child_process";
    const { postgres } = readyBinaries(process.env.NATIVE, openDataFolder(process.env.DATA));
    console.log(postgres + " " + execFileSync(postgres, ["--version"], { encoding: "utf8" }));
  `;
    if (projectIsPrivate === false) {
      const child = spawn(process.execPath, ["--input-type=module", "--eval", script], {
        cwd: projectFolder,
        uid: nobody,
        gid: nobody,
        stdio: ["ignore", "pipe", "inherit"],
        env: { ...process.env, NATIVE: native, DATA: dataDir },
      });
      const chunks: Buffer[] = [];
      child.stdout.on("data", (chunk: Buffer) => chunks.push(chunk));
      await new Promise((done) => child.on("close", done));
      assert.match(
        Buffer.concat(chunks).toString(),
        new RegExp(`^${dataDir}/postgres-bin/\\S+/bin/postgres postgres \\(PostgreSQL\\) 18`),
      );
      assert.throws(() => accessSync(link, constants.F_OK));
    }
    assert.equal(readyBinaries(native, openDataFolder(dataDir)).folder, native);
    accessSync(link, constants.F_OK);
  },
);

function must<T>(value: T | undefined): T {
  assert.ok(value !== undefined);
  return value;
}
