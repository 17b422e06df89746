import assert from "node:assert/strict";
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { after, describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { must } from "#lib/assert.ts";
import { openCaller } from "../caller.ts";
import { testInAll } from "../tiers.ts";
import {
  latchkeyProcess,
  newFolder,
  processesWith,
  ROOT,
  startLatchkey,
  urlOf,
  type Environment,
  type Result,
} from "./program.ts";

// DATABASE_URL is unset here: every test has an embedded PostgreSQL of its own, through the real commands.

const NOBODY = 65_534;
const isRoot = process.getuid?.() === 0;
const folders: string[] = [];

after(async () => {
  for (const folder of folders) {
    for (const pid of processesWith(folder)) process.kill(pid, "SIGKILL");
    rmSync(folder, { recursive: true, force: true });
  }
});

interface Place {
  readonly data: string;
  readonly environment: Environment;
  run(exitCode: number, ...arguments_: string[]): Promise<Result>;
}

/** A folder for one installation; with `user` it is that user's, who runs the commands. */
function newPlace(user?: number): Place {
  const parent = newFolder();
  folders.push(parent);
  if (user !== undefined) chownSync(parent, user, user);
  const data = join(parent, "data");
  const environment = { LATCHKEY_DATA_DIR: data, LATCHKEY_PORT: "0", HOME: parent };
  const options = user === undefined ? {} : { uid: user, gid: user };
  return {
    data,
    environment,
    run: async (exitCode, ...arguments_) => {
      const result = await latchkeyProcess(arguments_, environment, options);
      assert.equal(
        result.code,
        exitCode,
        `latchkey ${arguments_.join(" ")}: ${result.stdout}${result.stderr}`,
      );
      return result;
    },
  };
}

const DOCUMENTS = `account: acme
name: Acme
---
blueprint: echo
account: acme
nodes:
  - { id: in, type: input, refKey: words }
  - { id: rows, type: parse, from: in, format: json }
  - { id: out, type: output, refKey: words, from: rows }
`;

async function createKey(place: Place): Promise<string> {
  const { stdout } = await place.run(0, "keys", "create", "--account", "acme", "--json");
  return (JSON.parse(stdout) as { key: string }).key;
}

/** A run through the whole service. */
async function work(url: string, key: string): Promise<void> {
  const caller = openCaller(url, key);
  const run = await caller.post("/blueprints/echo/trigger", { words: [{ word: "one" }] });
  assert.equal(run.status, 202, run.text);
  assert.equal((await caller.waitForRun(run.body.id)).body.status, "completed");
}

/** Pid of the PostgreSQL of this folder, null when none runs. */
function postgresOf(place: Place): number | null {
  const file = join(place.data, "postgres/postmaster.pid");
  if (!existsSync(file)) return null;
  const pid = Number(readFileSync(file, "utf8").split("\n")[0]);
  return processesWith(place.data).includes(pid) || existsSync(`/proc/${pid}`) ? pid : null;
}

/** Nothing of the installation lives: neither its server nor one of the server's own processes. */
async function assertQuiet(place: Place): Promise<void> {
  for (let tries = 0; tries < 100 && processesWith(place.data).length > 0; tries++) await sleep(20);
  assert.deepEqual(processesWith(place.data), []);
  assert.equal(existsSync(join(place.data, "postgres/postmaster.pid")), false);
}

async function wholeRound(place: Place, options: { uid?: number; gid?: number } = {}): Promise<void> {
  const documents = join(place.data, "../documents.yaml");
  writeFileSync(documents, DOCUMENTS, { mode: 0o644 });
  await place.run(0, "init");
  await assertQuiet(place);
  // While the service does not run.
  await place.run(0, "apply", "-f", documents);
  const key = await createKey(place);
  await assertQuiet(place);

  const service = startLatchkey(["serve"], place.environment, options);
  const url = await urlOf(service);
  const server = postgresOf(place);
  await work(url, key);
  // While it runs: the same server, which goes on when the command has ended.
  await place.run(0, "apply", "-f", documents);
  await work(url, await createKey(place));
  await place.run(0, "doctor");
  assert.equal(postgresOf(place), server);
  service.child.kill("SIGTERM");
  assert.equal((await service.ended).code, 0, service.stderr());
  await assertQuiet(place);
  await place.run(0, "doctor");
  await assertQuiet(place);
}

describe("the embedded PostgreSQL under the commands", () => {
  test("init, serve, and commands while it runs and while it does not, also as root under a folder of mode 0700; nothing is left", async () => {
    const place = newPlace();
    const parent = join(place.data, "..");
    chmodSync(parent, 0o700);
    await wholeRound(place);
    assert.equal((statSync(parent).mode & 0o777).toString(8), "700");
    // Nobody may enter it, at most, as the PostgreSQL of a root's installation.
    assert.equal((statSync(place.data).mode & 0o767).toString(8), "700");
    for (const name of ["signing.key", "master.key", "postgres-password", "postgres-app-password"]) {
      const { mode, uid } = statSync(join(place.data, name));
      assert.deepEqual([(mode & 0o777).toString(8), uid], ["600", process.getuid?.()], name);
    }
    const asked = await place.run(0, "init");
    assert.match(
      asked.stdout,
      /Found the data folder[^]*Kept the signing key[^]*Kept the master key[^]*Kept the operators/,
    );
  });

  testInAll(
    "a server left by a killed process (db/embedded)",
    "after kill -9 of serve a command and the next serve adopt the server, and the work goes on",
    {},
    async () => {
      const place = newPlace();
      const documents = join(place.data, "../documents.yaml");
      writeFileSync(documents, DOCUMENTS);
      await place.run(0, "init");
      await place.run(0, "apply", "-f", documents);
      const key = await createKey(place);
      const first = startLatchkey(["serve"], place.environment);
      await urlOf(first);
      const server = must(postgresOf(place), "server");
      first.child.kill("SIGKILL");
      await first.ended;
      assert.equal(postgresOf(place), server, "the server outlives a killed service");

      const second = startLatchkey(["serve"], place.environment);
      const url = await urlOf(second);
      assert.match((await place.run(0, "keys", "list")).stdout, /key_/);
      assert.equal(postgresOf(place), server, "adopted, not started anew");
      await work(url, key);
      second.child.kill("SIGKILL");
      await second.ended;
      // A command alone finds it, uses it, and as its last user stops it.
      await place.run(0, "keys", "list");
      await assertQuiet(place);
      const third = startLatchkey(["serve"], place.environment);
      await work(await urlOf(third), key);
      third.child.kill("SIGTERM");
      assert.equal((await third.ended).code, 0);
      await assertQuiet(place);
    },
  );

  testInAll(
    "four processes that start at once (db/embedded)",
    "two commands at once share one server, and two inits at once make one installation",
    {},
    async () => {
      const place = newPlace();
      const both = await Promise.all([
        latchkeyProcess(["init"], place.environment),
        latchkeyProcess(["init"], place.environment),
      ]);
      assert.ok(
        both.some(({ code }) => code === 0),
        JSON.stringify(both),
      );
      for (const { code, stderr } of both)
        if (code !== 0) assert.match(stderr, /Run `latchkey init` again|Restore|empty|cut off/);
      await place.run(0, "init");
      await Promise.all([place.run(0, "keys", "list"), place.run(0, "doctor"), place.run(0, "keys", "list")]);
      await assertQuiet(place);
    },
  );

  test("Ctrl-C in the middle of a command stops the server that it has started", async () => {
    const place = newPlace();
    const command = startLatchkey(["init"], place.environment);
    await command.line(/data folder/);
    for (let tries = 0; tries < 1_000 && !existsSync(join(place.data, "postgres/postmaster.pid")); tries++)
      await sleep(5);
    command.child.kill("SIGINT");
    const { code } = await command.ended;
    // It may have been done by then.
    assert.ok(code === 130 || code === 0, String(code));
    await assertQuiet(place);
    await place.run(0, "init");
  });

  const why = ordinaryUserProblem();
  testInAll(
    "the server as an ordinary user (db/embedded-users)",
    "as an ordinary user, in a folder of its own",
    { skip: why ?? false },
    async () => {
      const place = newPlace(NOBODY);
      await wholeRound(place, { uid: NOBODY, gid: NOBODY });
      for (const name of ["signing.key", "master.key"]) {
        const { mode, uid } = statSync(join(place.data, name));
        assert.deepEqual([(mode & 0o777).toString(8), uid], ["600", NOBODY], name);
      }
    },
  );

  test(
    "an ordinary user who may not write where the program lies starts without a compile cache",
    { skip: why ?? false },
    async () => {
      const { code, stderr } = await latchkeyProcess(["--help"], {}, { uid: NOBODY, gid: NOBODY, cwd: "/" });
      assert.deepEqual([code, stderr], [0, ""]);
    },
  );

  test("a data folder that can't be used: exit code 1, which and what to do", async () => {
    const parent = newFolder();
    folders.push(parent);
    const file = join(parent, "file");
    writeFileSync(file, "");
    mkdirSync(join(parent, "full/postgres"), { recursive: true });
    writeFileSync(join(parent, "full/postgres/something"), "");
    for (const [data, remedy] of [
      [join(file, "data"), /LATCHKEY_DATA_DIR/],
      [join(parent, "full"), /no PG_VERSION.*LATCHKEY_DATA_DIR/],
    ] as const) {
      const { code, stderr } = await latchkeyProcess(["init"], { LATCHKEY_DATA_DIR: data });
      assert.equal(code, 1);
      assert.match(stderr, remedy);
      assert.doesNotMatch(stderr, /\bat .*\.ts:\d+/, "no stack");
    }
  });
});

/** Why the tests as another user can't run here, or null. */
function ordinaryUserProblem(): string | null {
  if (!isRoot) return "needs root, to become another user";
  for (let folder = ROOT; folder !== "/"; folder = join(folder, "..")) {
    if ((statSync(folder).mode & 0o005) !== 0o005)
      return `the program lies under ${folder}, which other users can't enter`;
  }
  return null;
}
