import assert from "node:assert/strict";
import { copyFileSync, mkdirSync, openSync, readFileSync, readSync, closeSync, renameSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { must } from "#lib/assert.ts";
import { prepareVault } from "#actions/vault/prepare-vault.ts";
import { openFileSource, readKeys } from "#vault/key-source.ts";
import { latchkey } from "../cli/program.ts";
import { connect, openCaller, type Caller } from "../caller.ts";
import type { Target } from "../flow/target.ts";
import { install, type Installation, type ServiceProcess } from "../service.ts";
import { portalDocuments, startTokenPortal } from "./token-portal.ts";

const TOKEN = "canary-token-of-the-api-tier";

let target: Target;
let installation: Installation & AsyncDisposable;
let api: ServiceProcess;
let apiEnvironment: Record<string, string>;
let caller: Caller;
let masterKeyFile: string;

before(async () => {
  target = await startTokenPortal(TOKEN);
  installation = await install();
  await installation.apply(...portalDocuments(target.url));
  // The machine of the api role has the signing key alone.
  const folder = join(installation.dataFolder, "api-machine");
  mkdirSync(folder, { mode: 0o700 });
  copyFileSync(join(installation.dataFolder, "signing.key"), join(folder, "signing.key"));
  masterKeyFile = join(installation.dataFolder, "master.key");
  apiEnvironment = { ...installation.environment, LATCHKEY_DATA_DIR: folder };
  api = await installation.serveProcess({ LATCHKEY_DATA_DIR: folder }, ["api"]);
  caller = openCaller(api.url, await installation.createKey("acme"));
});

after(async () => {
  await installation?.[Symbol.asyncDispose]();
  await target?.close();
});

function privateHalves(): readonly Buffer[] {
  const { keys } = JSON.parse(readFileSync(masterKeyFile, "utf8")) as { keys: { d: string }[] };
  return keys.flatMap(({ d }) => [Buffer.from(d, "latin1"), Buffer.from(d, "base64url")]);
}

/** Everything that the process has in memory and may write to: how often each needle is there. */
function countInMemory(pid: number, needles: readonly Buffer[]): readonly number[] {
  const counts = needles.map(() => 0);
  const memory = openSync(`/proc/${pid}/mem`, "r");
  const chunk = Buffer.alloc(4 << 20);
  const overlap = Math.max(...needles.map((needle) => needle.length)) - 1;
  try {
    for (const line of readFileSync(`/proc/${pid}/maps`, "latin1").split("\n")) {
      const match = /^([0-9a-f]+)-([0-9a-f]+) rw/.exec(line);
      if (!match || /\[vvar|\[vsyscall/.test(line)) continue;
      const end = Number.parseInt(match[2] ?? "", 16);
      for (let at = Number.parseInt(match[1] ?? "", 16); at < end; at += chunk.length - overlap) {
        const read = readPart(memory, chunk, at, Math.min(chunk.length, end - at));
        const part = chunk.subarray(0, read);
        needles.forEach((needle, index) => {
          for (let found = part.indexOf(needle); found !== -1; found = part.indexOf(needle, found + 1))
            counts[index] = (counts[index] ?? 0) + 1;
        });
      }
    }
  } finally {
    closeSync(memory);
  }
  return counts;
}

function readPart(memory: number, into: Buffer, at: number, length: number): number {
  try {
    return readSync(memory, into, 0, length, at);
  } catch {
    // A page that is reserved and was never used.
    return 0;
  }
}

test("an api process collects a credential without the master key, and a worker elsewhere uses it", async () => {
  const credential = await connect(caller, "strat_portal", { token: TOKEN });
  const { body } = await caller.post("/blueprints/read/trigger", { credential_id: credential });
  const worker = await installation.serveProcess({}, ["worker"]);
  assert.equal((await caller.waitForRun(body.id)).body.status, "completed");
  // docs/decisions/0013: neither its environment nor its memory holds what opens; the worker's memory does, so it is found.
  const environ = readFileSync(`/proc/${api.child.pid}/environ`, "latin1");
  for (const needle of privateHalves()) assert.ok(!environ.includes(needle.toString("latin1")));
  assert.ok(!/LATCHKEY_MASTER_KEY=/.test(environ));
  assert.deepEqual(countInMemory(must(api.child.pid, "pid"), privateHalves()), [0, 0]);
  const held = countInMemory(must(worker.child.pid, "pid"), privateHalves());
  assert.ok(
    held.some((count) => count > 0),
    "the search finds a key where there is one",
  );
  await worker.end();
});

test("also on a machine that has the file, an api process never reads it", async () => {
  const service = await installation.serveProcess({}, ["api"]);
  await connect(openCaller(service.url, await installation.createKey("acme")), "strat_portal", {
    token: TOKEN,
  });
  assert.deepEqual(countInMemory(must(service.child.pid, "pid"), privateHalves()), [0, 0]);
  await service.end();
});

test("what it has sealed it can't open: the error says why", async () => {
  const vault = await prepareVault(installation.database.db, null);
  assert.equal(vault.canOpen, false);
  const [row] = await installation.database.db.query<{
    id: string;
    accountId: string;
    sealed: Buffer;
  }>(`select id, account_id as "accountId", sealed from credential limit 1`);
  const { id, accountId, sealed } = must(row, "a credential");
  const binding = { purpose: "credential", accountId, rowId: id, strategyId: "strat_portal" } as const;
  await assert.rejects(vault.open(sealed, binding), {
    code: "no_private_key",
    message: /can seal but not open: it has no master key/,
  });
  // The same row opens with the key: it is the right one.
  const opener = await prepareVault(installation.database.db, await readKeys(openFileSource(masterKeyFile)));
  assert.match(Buffer.from(await opener.open(sealed, binding)).toString(), new RegExp(TOKEN));
});

test("it refuses the master key in its environment, and the worker role refuses to be without", async () => {
  const given = await latchkey(["serve", "--roles", "api"], {
    ...apiEnvironment,
    LATCHKEY_MASTER_KEY: readFileSync(masterKeyFile, "utf8"),
  });
  assert.equal(given.code, 1);
  assert.match(given.stderr, /LATCHKEY_MASTER_KEY is set, but this process has only the api role/);
  const without = await latchkey(["serve", "--roles", "worker"], apiEnvironment);
  assert.equal(without.code, 1);
  assert.match(without.stderr, /There is no master key: .*api-machine\/master\.key does not exist/);
});

test("it follows a promotion within two seconds, without a restart and without the key", async () => {
  const { db } = installation.database;
  const added = await installation.command("master-key", "add");
  const kid = must(/Added (\S+) to/.exec(added.stdout)?.[1], added.stdout + added.stderr);
  assert.equal((await installation.command("master-key", "promote", kid)).code, 0);
  await sleep(2_000);
  const credential = await connect(caller, "strat_portal", { token: TOKEN });
  const [row] = await db.query<{ kid: string }>("select kid from credential where id = $1", [credential]);
  assert.equal(row?.kid, kid);
  assert.deepEqual(countInMemory(must(api.child.pid, "pid"), privateHalves()), [0, 0, 0, 0]);
});

test("a database that no key was ever made for is refused, with the remedy", async () => {
  await using empty = await install();
  await empty.database.db.query("delete from vault_key");
  const { code, stderr } = await empty.command("serve", "--roles", "api");
  assert.equal(code, 1);
  assert.match(stderr, /The vault has no key yet: start once with the master key/);
});

test("a worker whose sentinel was exchanged refuses to start", async () => {
  await using other = await install();
  const { db } = other.database;
  await db.query("update vault_key set sentinel = set_byte(sentinel, 350, get_byte(sentinel, 350) # 1)");
  const { code, stderr } = await other.command("serve");
  assert.equal(code, 1);
  assert.match(stderr, /The sentinel of master key \S+ does not open with that key: its row .* was changed/);
  renameSync(join(other.dataFolder, "master.key"), join(other.dataFolder, "gone"));
  assert.match((await other.command("serve")).stderr, /There is no master key/);
});
