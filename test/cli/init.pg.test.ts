import assert from "node:assert/strict";
import { readFileSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { must } from "#lib/assert.ts";
import { signingOf } from "../invariants.ts";
import { verifyPassword } from "#lib/password.ts";
import { createTestDatabase, type TestDatabase } from "../database.ts";
import { openCaller } from "../caller.ts";
import { install, type Installation } from "../service.ts";
import { inTier, testInAll } from "../tiers.ts";
import { latchkey, newFolder, startLatchkey, urlOf, type Environment } from "./program.ts";

let installation: Installation & AsyncDisposable;
let keys: { readonly signing: string; readonly master: string };
const folders: string[] = [];

before(async () => {
  installation = await install();
  const read = (name: string): string => readFileSync(join(installation.dataFolder, name), "utf8");
  keys = { signing: read("signing.key"), master: read("master.key") };
});

after(async () => {
  await installation[Symbol.asyncDispose]();
  for (const folder of folders) rmSync(folder, { recursive: true, force: true });
});

/** The database of the installation, with another data folder that holds the given key files. */
function folderWith(files: Readonly<Record<string, string>>): Environment {
  const folder = newFolder();
  folders.push(folder);
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text, { mode: 0o600 });
  return { ...installation.environment, LATCHKEY_DATA_DIR: folder };
}

async function emptyDatabase(): Promise<TestDatabase & AsyncDisposable> {
  const database = await createTestDatabase();
  return { ...database, [Symbol.asyncDispose]: async () => await database.drop() };
}

const modeOf = (path: string): string => (statSync(path).mode & 0o777).toString(8);

describe("init", () => {
  test("makes a private data folder with two key files of mode 0600, and prints the first operator's password once", async () => {
    await using database = await emptyDatabase();
    const data = join(newFolder(), "not/there/yet");
    folders.push(join(data, "../../.."));
    const environment = { DATABASE_URL: database.connectionString, LATCHKEY_DATA_DIR: data };

    const first = await latchkey(["init", "--operator", "ops@acme.example"], environment);
    assert.equal(first.code, 0, first.stderr);
    assert.equal(modeOf(data), "700");
    assert.equal(modeOf(join(data, "signing.key")), "600");
    assert.equal(modeOf(join(data, "master.key")), "600");
    const printed = first.stdout.match(/ops@acme\.example with the password (\S+)/g) ?? [];
    assert.equal(printed.length, 1, first.stdout);
    const password = must(/password (\S+)/.exec(printed[0])?.[1], "password");
    assert.equal(first.stderr.includes(password), false);

    const stored = async () =>
      await database.db.query<{ email: string; hash: string; role: string }>(
        `select email, password_hash as hash, role from operator`,
      );
    const [operator, ...others] = await stored();
    assert.deepEqual([operator?.email, operator?.role, others.length], ["ops@acme.example", "admin", 0]);
    assert.match(must(operator, "operator").hash, /^\$argon2id\$v=19\$/);
    const key = signingOf({ dataFolder: data }).operators.passwordKey;
    assert.equal(await verifyPassword(password, must(operator, "operator").hash, key), true);
    for (const file of readdirSync(data))
      assert.equal(readFileSync(join(data, file), "utf8").includes(password), false);

    const before = [readFileSync(join(data, "signing.key")), readFileSync(join(data, "master.key"))];
    const second = await latchkey(["init", "--operator", "other@acme.example"], environment);
    assert.equal(second.code, 0, second.stderr);
    assert.match(second.stdout, /Kept the signing key[^]*Kept the master key[^]*Kept the operators/);
    assert.doesNotMatch(second.stdout, /password/);
    assert.deepEqual(
      [readFileSync(join(data, "signing.key")), readFileSync(join(data, "master.key"))],
      before,
    );
    assert.deepEqual(await stored(), [operator]);
  });

  test("keys in variables are used, and no file is written beside them", async () => {
    await using database = await emptyDatabase();
    const environment: Environment = {
      ...folderWith({}),
      DATABASE_URL: database.connectionString,
      LATCHKEY_SIGNING_KEY: keys.signing,
      LATCHKEY_MASTER_KEY: keys.master,
    };
    const result = await latchkey(["init"], environment);
    assert.equal(result.code, 0, result.stderr);
    assert.deepEqual(readdirSync(must(environment["LATCHKEY_DATA_DIR"], "folder")), []);
  });

  for (const [missing, kept, remedy] of [
    ["master.key", "signing.key", /sealed with master key \S+[^]*Restore that file from your backup/],
    ["signing.key", "master.key", /signing key \S+ does not exist\. Restore that file from your backup/],
  ] as const) {
    test(`a database in use whose ${missing} is missing gets no second one: refused with the remedy`, async () => {
      const text = kept === "signing.key" ? keys.signing : keys.master;
      const environment = folderWith({ [kept]: text });
      const result = await latchkey(["init"], environment);
      assert.equal(result.code, 1);
      assert.match(result.stderr, remedy);
      assert.deepEqual(readdirSync(must(environment["LATCHKEY_DATA_DIR"], "folder")), [kept]);
    });
  }

  const AT_ONCE = "two at once on one data folder make one pair of keys, which opens the vault";
  testInAll("four servers at once on one folder (db/embedded)", AT_ONCE, {}, async () => {
    await using database = await emptyDatabase();
    const environment = { ...folderWith({}), DATABASE_URL: database.connectionString };
    const both = await Promise.all([latchkey(["init"], environment), latchkey(["init"], environment)]);
    const codes = both.map(({ code }) => code);
    assert.ok(codes.includes(0), JSON.stringify(both));
    for (const { code, stderr } of both)
      if (code !== 0) assert.match(stderr, /Run `latchkey init` again|Restore|empty|truncated/);
    const again = await latchkey(["init"], environment);
    assert.equal(again.code, 0, again.stderr);
    assert.equal((await database.db.query("select 1 from vault_key")).length, 1);
    assert.equal((await database.db.query("select 1 from operator")).length, 1);
  });
});

describe("serve refuses, with exit code 1 and what to do,", () => {
  const refused = async (
    environment: Environment,
    message: RegExp,
    ...arguments_: string[]
  ): Promise<void> => {
    const { code, stdout, stderr } = await latchkey(["serve", ...arguments_], environment);
    assert.equal(code, 1, stderr);
    assert.match(stderr, message);
    assert.equal(stdout, "");
    for (const secret of [keys.signing.trim(), ...(keys.master.match(/"d": "([^"]+)"/)?.slice(1) ?? [])])
      assert.equal(stderr.includes(secret.slice(0, 30)), false, "a key is in the message");
  };

  test("without any key", async () => {
    await refused(
      folderWith({}),
      /There is no signing key: .*signing\.key does not exist.*Run `latchkey init`/,
    );
  });
  test("without the master key, when it is to work", async () => {
    await refused(
      folderWith({ "signing.key": keys.signing }),
      /There is no master key: .*Run `latchkey init`.*or provide the key/,
    );
  });
  test("with the master key of another installation", async () => {
    await using other = await install();
    const master = readFileSync(join(other.dataFolder, "master.key"), "utf8");
    const files = { "signing.key": keys.signing, "master.key": master };
    await refused(folderWith(files), /master key does not belong to this database.*from your backup/);
  });
  // The reading of keys has its own tests (vault/signing); here is that its message comes out, and nothing starts.
  const short = (text: string): string => text.trim().slice(0, -6);
  const damages = [
    ["the two were not swapped", "master", "signing", /This is a master key, not a signing key/],
    ["a signing key twice", "signing", "signing", /This is a signing key, not a master key/],
    ["a signing key cut off", "short signing", "master", /signing key is truncated/],
    ["a master key cut off", "signing", "short master", /master key is truncated/],
    ["an empty signing key", "", "master", /signing key is empty/],
    ["an empty master key", "signing", "\n", /master key is empty/],
  ] as const;
  const isRepresentative = ([name]: (typeof damages)[number]): boolean =>
    name === "the two were not swapped" || name === "a master key cut off";
  for (const [name, signing, master, message] of inTier(damages, isRepresentative)) {
    test(`with keys that can't be used: ${name}`, async () => {
      const texts: Readonly<Record<string, string>> = {
        signing: keys.signing,
        master: keys.master,
        "short signing": short(keys.signing),
        "short master": short(keys.master),
      };
      const files = { "signing.key": texts[signing] ?? signing, "master.key": texts[master] ?? master };
      await refused(folderWith(files), message);
    });
  }
  test("when the file that a variable names is not there", async () => {
    const environment = {
      ...folderWith({ "signing.key": keys.signing }),
      LATCHKEY_MASTER_KEY_FILE: "/nowhere/master.key",
    };
    await refused(
      environment,
      /LATCHKEY_MASTER_KEY_FILE: \/nowhere\/master\.key can't be read \(ENOENT\). Store the key there/,
    );
  });
});

describe("keys", () => {
  test("a variable wins over the file, and a named file over the one in the data folder", async () => {
    const wrong = { "signing.key": "lks_wrong", "master.key": "{}" };
    const folder = folderWith({ ...wrong, "real-signing": keys.signing, "real-master": keys.master });
    const place = must(folder["LATCHKEY_DATA_DIR"], "folder");
    const environments: Environment[] = [
      { ...folder, LATCHKEY_SIGNING_KEY: keys.signing, LATCHKEY_MASTER_KEY: keys.master },
      {
        ...folder,
        LATCHKEY_SIGNING_KEY_FILE: join(place, "real-signing"),
        LATCHKEY_MASTER_KEY_FILE: join(place, "real-master"),
      },
      // An empty variable counts as unset.
      {
        ...folder,
        LATCHKEY_SIGNING_KEY: keys.signing,
        LATCHKEY_MASTER_KEY: "",
        LATCHKEY_MASTER_KEY_FILE: join(place, "real-master"),
      },
    ];
    // The last one has a value that wins over the file in the data folder, and a named file that does.
    for (const environment of inTier(environments, (_, index) => index === 2)) {
      const service = startLatchkey(["serve"], environment);
      await urlOf(service);
      service.child.kill("SIGTERM");
      assert.equal((await service.ended).code, 0);
    }
  });
});

describe("roles", () => {
  test("`--roles api` starts without the master key, takes work and runs nothing", async () => {
    await installation.apply(
      "account: acme\nname: Acme",
      "blueprint: echo\naccount: acme\nnodes:\n  - { id: in, type: input, refKey: words }\n" +
        "  - { id: rows, type: parse, from: in, format: json }\n  - { id: out, type: output, refKey: words, from: rows }",
    );
    const key = await installation.createKey("acme");
    const service = startLatchkey(["serve", "--roles", "api"], folderWith({ "signing.key": keys.signing }));
    const caller = openCaller(await urlOf(service), key);
    const run = await caller.post("/blueprints/echo/trigger", { words: [{ a: 1 }] });
    assert.equal(run.status, 202, run.text);
    // Without a worker it stays as it is: a worker takes a job within milliseconds.
    await new Promise((resolve) => setTimeout(resolve, 1_500));
    assert.equal((await caller.get(`/blueprint-runs/${run.body.id}/status`)).body.status, "queued");
    assert.equal((await installation.database.db.query("select 1 from worker")).length, 0);

    const worker = startLatchkey(["serve", "--roles", "worker"], installation.environment);
    const workerUrl = await urlOf(worker);
    for (const [path, body] of [
      ["/healthz", { status: "ok" }],
      ["/readyz", { status: "ready" }],
    ] as const) {
      const health = await fetch(workerUrl + path);
      assert.equal(health.status, 200);
      assert.deepEqual(await health.json(), body);
      assert.equal(health.headers.get("cache-control"), "no-store");
    }
    const refused = await openCaller(workerUrl, key).get(`/blueprint-runs/${run.body.id}/status`);
    assert.equal(refused.status, 404);
    assert.deepEqual(Object.keys(refused.body), ["error"]);
    assert.equal(refused.body.error.type, "not_found");
    assert.match(refused.headers.get("content-type") ?? "", /^application\/json/);
    // The run that nobody carried is carried now.
    assert.equal((await caller.waitForRun(run.body.id)).body.status, "completed");
    for (const each of [service, worker]) {
      each.child.kill("SIGTERM");
      assert.equal((await each.ended).code, 0);
    }
  });

  test("an unknown role is a usage mistake: exit code 2", async () => {
    for (const roles of inTier(["runner", "", "api,", "API"], (each) => each === "runner")) {
      const { code, stderr } = await latchkey(["serve", "--roles", roles], installation.environment);
      assert.equal(code, 2, roles);
      assert.match(stderr, /Roles are api and worker/);
    }
  });
});
