import assert from "node:assert/strict";
import { existsSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { must } from "#lib/assert.ts";
import { eventually } from "../eventually.ts";
import { openCaller } from "../caller.ts";
import { install, type CommandResult, type Installation, type RunningService } from "../service.ts";
import { latchkey, newFolder, runCommand } from "./program.ts";

const MISTAKES = join(import.meta.dirname, "fixtures/ten-mistakes");

const ACCOUNT = "account: acme\nname: Acme\n";
const STRATEGY = `strategy: strat_portal
account: acme
name: Portal
hosts: [https://portal.example]
fields:
  - { key: token, label: Token, type: password }
login: { type: bearer, token: token, check: { request: { url: /me } } }
`;
const blueprint = (key: string): string => `blueprint: ${key}
account: acme
nodes:
  - { id: in, type: input, refKey: words }
  - { id: rows, type: parse, from: in, format: json }
  - { id: out, type: output, refKey: words, from: rows }
`;

let installation: Installation & AsyncDisposable;
let service: RunningService;
let folder: string;

before(async () => {
  installation = await install();
  await installation.apply(ACCOUNT, STRATEGY, blueprint("echo"), blueprint("other"));
  service = await installation.serve();
  folder = newFolder();
});

after(async () => {
  await installation[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true, force: true });
});

const run = async (exitCode: number, ...arguments_: string[]): Promise<CommandResult> =>
  await runCommand(installation, exitCode, arguments_);

async function newKey(...options: string[]): Promise<{ id: string; key: string }> {
  const { stdout } = await run(0, "keys", "create", "--account", "acme", "--json", ...options);
  return JSON.parse(stdout) as { id: string; key: string };
}

const trigger = async (key: string, blueprintKey = "echo"): Promise<number> =>
  (await openCaller(service.url, key).post(`/blueprints/${blueprintKey}/trigger`, { words: [] })).status;

describe("keys", () => {
  test("`keys create --json` prints one line with id and key, and the key works at once", async () => {
    const { stdout, stderr } = await run(0, "keys", "create", "--account", "acme", "--json");
    assert.match(stdout, /^\{"id":"key_[0-9A-Za-z]{28}","key":"lk_[0-9A-Za-z]+"\}\n$/);
    const { key } = JSON.parse(stdout) as { key: string };
    assert.equal(stderr.includes(key), false);
    assert.equal(await trigger(key), 202);
  });

  test("without --json standard output is the key alone, so that a script can keep it", async () => {
    const { stdout, stderr } = await run(0, "keys", "create", "--account", "acme", "--name", "Nightly");
    assert.match(stdout, /^lk_[0-9A-Za-z]+\n$/);
    assert.match(stderr, /API key key_\w+ of account acme\. It is shown only once/);
    assert.equal(await trigger(stdout.trim()), 202);
  });

  test("no list shows a key, and no row holds one", async () => {
    const { id, key } = await newKey("--name", "Listed", "--blueprints", "echo");
    for (const options of [[], ["--json"], ["--account", "acme"], ["--account", "acme", "--json"]]) {
      const { stdout, stderr } = await run(0, "keys", "list", ...options);
      assert.match(stdout, new RegExp(id));
      assert.equal((stdout + stderr).includes(key.slice(3, 20)), false);
    }
    assert.match(
      (await run(0, "keys", "list")).stdout,
      new RegExp(`${id} +acme +Listed +echo +runs +Active`),
    );
    const [row] = await installation.database.db.query<{ text: string }>(
      "select api_key::text as text from api_key where id = $1",
      [id],
    );
    assert.equal(must(row, "row").text.includes(key.slice(3, 20)), false);
    assert.equal(installation.logs().includes(key), false);
  });

  test("a revoked key is refused soon, by a service that has just used it", async () => {
    const { id, key } = await newKey();
    assert.equal(await trigger(key), 202);
    assert.match((await run(0, "keys", "revoke", id)).stdout, new RegExp(`Revoked ${id}`));
    await eventually("it is refused", async () => ((await trigger(key)) === 401 ? true : undefined), 60_000);
    assert.match((await run(0, "keys", "list")).stdout, new RegExp(`${id}.* Revoked `));
    await run(0, "keys", "revoke", id);
  });

  test("--blueprints limits a key: 403 for the others", async () => {
    const { key } = await newKey("--blueprints", "echo");
    assert.deepEqual([await trigger(key, "echo"), await trigger(key, "other")], [202, 403]);
    const both = await newKey("--blueprints", "echo, other");
    assert.deepEqual([await trigger(both.key, "echo"), await trigger(both.key, "other")], [202, 202]);
  });

  test("--scope says what a key may do; one for some Blueprints is for their runs unless it says more", async () => {
    const session = async (key: string): Promise<number> =>
      (await openCaller(service.url, key).post("/credential-sessions", {})).status;
    const runs = await newKey("--scope", "runs");
    assert.deepEqual([await trigger(runs.key), await session(runs.key)], [202, 403]);
    const sessions = await newKey("--scope", "sessions, credentials:delete");
    assert.deepEqual([await trigger(sessions.key), await session(sessions.key)], [403, 422]);
    const limited = await newKey("--blueprints", "echo");
    assert.deepEqual([await trigger(limited.key), await session(limited.key)], [202, 403]);
    const both = await newKey("--blueprints", "echo", "--scope", "runs,sessions");
    assert.deepEqual([await trigger(both.key, "other"), await session(both.key)], [403, 422]);
    const list = (await run(0, "keys", "list")).stdout;
    assert.match(list, new RegExp(`${both.id} .* echo +runs,sessions +Active`));
    for (const wrong of ["", "run", "runs,", "sessions credentials:delete"]) {
      const refused = await run(2, "keys", "create", "--account", "acme", `--scope=${wrong}`);
      assert.match(refused.stderr, /The scopes are runs, sessions, credentials:delete/);
    }
  });

  test("--expires ends a key by the database's clock", async () => {
    const { id, key } = await newKey("--expires", "90d");
    const { db } = installation.database;
    const [row] = await db.query<{ days: number }>(
      "select extract(epoch from expires_at - created_at)::float / 86400 as days from api_key where id = $1",
      [id],
    );
    assert.ok(Math.abs(must(row, "row").days - 90) < 0.01);
    assert.equal(await trigger(key), 202);
    await db.query("update api_key set expires_at = app_now() - interval '1 ms' where id = $1", [id]);
    // A change of the row counts within a second: who a key belongs to is known for a moment.
    await new Promise((resolve) => setTimeout(resolve, 1_000));
    assert.equal(await trigger(key), 401);
  });

  test("what can't be made is refused with the remedy: exit code 1; a wrong option is exit code 2", async () => {
    const count = async () => (await installation.database.db.query("select 1 from api_key")).length;
    const before = await count();
    assert.match(
      (await run(1, "keys", "create", "--account", "nobody")).stderr,
      /no account "nobody".*latchkey apply -f/,
    );
    assert.match(
      (await run(1, "keys", "list", "--account", "nobody")).stderr,
      /no account "nobody".*latchkey apply -f/,
    );
    const noBlueprint = await run(1, "keys", "create", "--account", "acme", "--blueprints", "echo,ecco");
    assert.match(noBlueprint.stderr, /no Blueprint "ecco"/);
    assert.match((await run(1, "keys", "revoke", "key_nothing")).stderr, /no API key key_nothing.*keys list/);
    for (const wrong of ["90", "soon", "0", "-1d", "0d", "9999999d"])
      assert.match(
        (await run(2, "keys", "create", "--account", "acme", `--expires=${wrong}`)).stderr,
        /90d/,
        wrong,
      );
    for (const wrong of ["", ",", "echo,"])
      assert.match(
        (await run(2, "keys", "create", "--account", "acme", `--blueprints=${wrong}`)).stderr,
        /Name Blueprints/,
      );
    await run(2, "keys", "create");
    await run(2, "keys", "revoke");
    await run(2, "keys");
    assert.equal(await count(), before);
  });
});

/** Everything that `apply` may write, as text. */
async function configDump(): Promise<string> {
  const tables = ["account", "strategy", "strategy_version", "blueprint", "blueprint_version", "api_key"];
  const rows = await Promise.all(
    tables.map((table) =>
      installation.database.db.query(
        `select '${table}' as in, t::text as row from ${table} t order by t::text`,
      ),
    ),
  );
  return JSON.stringify(rows, null, 1);
}

describe("apply", () => {
  const write = (name: string, text: string): string => {
    const file = join(folder, name);
    writeFileSync(file, text);
    return file;
  };

  test("creates, changes nothing the second time, updates, retires; the running service follows at once", async () => {
    const documents = (name: string, extra = "") =>
      `${ACCOUNT}---\n${STRATEGY.replace("strat_portal", "strat_second").replace("Portal", name)}${extra}---\n${blueprint("second")}${extra}`;
    const file = write("second.yaml", documents("Second"));
    const changes = async (): Promise<unknown> =>
      (
        JSON.parse((await run(0, "apply", "-f", file, "--json")).stdout) as { changes: { change: string }[] }
      ).changes.map(({ change }) => change);
    assert.deepEqual(await changes(), ["unchanged", "create", "create"]);
    const after = await configDump();
    assert.deepEqual(await changes(), ["unchanged", "unchanged", "unchanged"]);
    assert.equal(await configDump(), after);

    const { key } = await newKey();
    const caller = openCaller(service.url, key);
    const session = async (): Promise<number> =>
      (await caller.post("/credential-sessions", { strategy_id: "strat_second" })).status;
    assert.deepEqual([await session(), await trigger(key, "second")], [201, 202]);

    write("second.yaml", documents("Renamed"));
    assert.deepEqual(await changes(), ["unchanged", "update", "unchanged"]);
    write("second.yaml", documents("Renamed", "retired: true\n"));
    const text = (await run(0, "apply", "-f", file)).stdout;
    assert.match(
      text,
      /- retire +strategy +acme\/strat_second\n {6}\+ retired: true\n- retire +blueprint +acme\/second\n {6}\+ retired: true/,
    );
    assert.deepEqual([await session(), await trigger(key, "second")], [422, 404]);
    assert.deepEqual(await changes(), ["unchanged", "unchanged", "unchanged"]);
    write("second.yaml", documents("Renamed"));
    assert.deepEqual(await changes(), ["unchanged", "update", "update"]);
    assert.deepEqual([await session(), await trigger(key, "second")], [201, 202]);
  });

  const PLACES = [
    "account.yaml:3:12 retention ",
    "strategies.yaml:2:10 account ",
    "strategies.yaml:12:9 hosts[0] ",
    "strategies.yaml:14:39 fields[0].type ",
    "strategies.yaml:15:16 login.type ",
    "sub/blueprint.json:4:14 timeout ",
    "sub/blueprint.json:7:46 nodes[1].from ",
    "sub/blueprint.json:8:13 nodes[2].id ",
    "sub/blueprint.json:8:64 nodes[2].where ",
    "sub/broken.yml:3:1 ",
  ];
  const REMEDY =
    /like `500ms`|there are: |write `https|did you mean `|choose another|doesn't compile: Expected|Missing closing/;

  const assertTen = (stderr: string, root: string): void => {
    const lines = stderr.trimEnd().split("\n");
    assert.equal(lines.pop(), "10 problems; nothing was changed.");
    assert.deepEqual(
      lines.map((line, index) => line.startsWith(join(root, must(PLACES[index], line))) && REMEDY.test(line)),
      PLACES.map(() => true),
      stderr,
    );
  };

  test("a folder with ten mistakes in four files lists all ten on standard error and changes nothing", async () => {
    const good = write("good.yaml", blueprint("third"));
    const before = await configDump();
    const { stdout, stderr } = await run(1, "apply", "-f", MISTAKES, good);
    assert.equal(stdout, "");
    assertTen(stderr, MISTAKES);
    assert.equal(await configDump(), before);
  });

  test("`validate` says the same without any database, and makes no data folder", async () => {
    const place = newFolder();
    const environments = [{ LATCHKEY_DATA_DIR: join(place, "data") }, {}];
    for (const environment of environments) {
      const { code, stdout, stderr } = await latchkey(["validate", "-f", MISTAKES], environment, {
        cwd: place,
      });
      assert.equal(code, 1);
      assert.equal(stdout, "");
      assertTen(stderr, MISTAKES);
    }
    write("all.yaml", [ACCOUNT, STRATEGY, blueprint("echo")].join("---\n"));
    const good = await latchkey(["validate", "-f", join(folder, "all.yaml")], {}, { cwd: place });
    assert.deepEqual([good.code, good.stdout, good.stderr], [0, "3 documents are valid.\n", ""]);
    // A mistake in the documents comes before a missing installation; neither makes one.
    for (const command of ["apply", "plan"]) {
      const refused = await latchkey([command, "-f", MISTAKES], {}, { cwd: place });
      assert.equal(refused.code, 1);
      assertTen(refused.stderr, MISTAKES);
    }
    for (const command of [
      ["apply", "-f", join(folder, "all.yaml")],
      ["plan", "-f", join(folder, "all.yaml")],
      ["keys", "list"],
      ["keys", "revoke", "key_x"],
      ["doctor"],
    ]) {
      const { code, stdout, stderr } = await latchkey(command, {}, { cwd: place });
      assert.equal(code, 1);
      assert.match(stdout + stderr, /There is no Latchkey database in \S+\.latchkey\. Run `latchkey init`/);
    }
    assert.equal(existsSync(join(place, ".latchkey")), false);
    assert.equal(existsSync(join(place, "data")), false);
    rmSync(place, { recursive: true });
  });

  test("a path that does not exist or holds nothing: exit code 1 and which", async () => {
    mkdirSync(join(folder, "empty"), { recursive: true });
    for (const command of ["apply", "plan", "validate"]) {
      assert.match(
        (await run(1, command, "-f", "/nowhere/documents")).stderr,
        /^\/nowhere\/documents does not exist\.$/m,
      );
      assert.match(
        (await run(1, command, "-f", join(folder, "empty"))).stderr,
        /No YAML or JSON file under .*empty/,
      );
      await run(2, command);
    }
  });

  test("two at once on one database both succeed, and the documents are there once", async () => {
    const file = write("fourth.yaml", blueprint("fourth"));
    const both = await Promise.all([
      run(0, "apply", "-f", file, "--json"),
      run(0, "apply", "-f", file, "--json"),
    ]);
    const changes = both.map(
      ({ stdout }) => (JSON.parse(stdout) as { changes: [{ change: string }] }).changes[0].change,
    );
    assert.deepEqual(changes.toSorted(), ["create", "unchanged"]);
  });
});

describe("help and exit codes", () => {
  const COMMANDS = [
    ["init"],
    ["serve"],
    ["apply"],
    ["validate"],
    ["keys"],
    ["keys", "create"],
    ["keys", "list"],
    ["keys", "rotate"],
    ["keys", "revoke"],
    ["doctor"],
    ["demo"],
  ];

  test("`--help` names every command, and the help of each has an example", async () => {
    const main = await run(0, "--help");
    for (const [name] of COMMANDS) assert.match(main.stdout, new RegExp(`^  ${name}\\b`, "m"));
    assert.match(main.stdout, /latchkey init\n +latchkey serve/);
    const pages = await Promise.all(
      COMMANDS.map(async (command) => [command, await run(0, ...command, "--help")] as const),
    );
    for (const [command, { stdout }] of pages) {
      assert.match(stdout, new RegExp(`^Usage: latchkey ${command.join(" ")} `));
      assert.match(stdout, /Examples?:\n +(latchkey|npm run) /, command.join(" "));
    }
  });

  test("usage mistakes are exit code 2 with a pointer to the help, on standard error", async () => {
    for (const wrong of [
      ["serv"],
      ["serve", "--rolls", "api"],
      ["apply"],
      ["validate", "documents"],
      ["keys", "make"],
      ["init", "extra"],
    ]) {
      const { stdout, stderr } = await run(2, ...wrong);
      assert.equal(stdout, "");
      assert.match(stderr, /error: .+\n[^]*--help/, wrong.join(" "));
    }
    assert.match((await run(2)).stderr, /^Usage: latchkey /);
    assert.match((await run(0, "--version")).stdout, /^\d+\.\d+\.\d+\n$/);
  });
});
