import assert from "node:assert/strict";
import { chmodSync, cpSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { describeMachine, listMachineAdvice, type MachineState } from "#cli/doctor-machine.ts";
import { must } from "#lib/assert.ts";
import { connect, openCaller, type Caller } from "../caller.ts";
import { moveClock, REAL_TIME, setClock } from "../clock.ts";
import { install, type CommandResult, type Installation } from "../service.ts";
import { putStrategyInForce } from "../in-force.ts";
import { latchkey, newFolder } from "./program.ts";

const DOCUMENTS = [
  "account: acme\nname: Acme",
  `strategy: strat_portal
account: acme
name: Portal
hosts: [https://portal.example]
fields:
  - { key: token, label: Token, type: password }
login: { type: bearer, token: token }`,
];

let installation: Installation & AsyncDisposable;
let caller: Caller;
let folder: string;

before(async () => {
  installation = await install();
  await installation.apply(...DOCUMENTS);
  caller = openCaller((await installation.serve()).url, await installation.createKey("acme"));
  folder = newFolder();
});

after(async () => {
  await installation[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true, force: true });
});

async function runDoctor(exitCode: number, dataFolder = installation.dataFolder): Promise<CommandResult> {
  const result = await latchkey(["doctor"], { ...installation.environment, LATCHKEY_DATA_DIR: dataFolder });
  assert.equal(result.code, exitCode, result.stdout + result.stderr);
  return result;
}

describe("doctor", () => {
  test("all is well: exit code 0", async () => {
    await connect(caller, "strat_portal", { token: "canary-token-5512" });
    const { stdout } = await runDoctor(0);
    assert.match(
      stdout,
      /ok +the settings[^]*ok +the signing key[^]*ok +the master key[^]*ok +the database[^]*opens all 1 credentials/,
    );
    assert.doesNotMatch(stdout, /wrong|canary/);
    assert.match(stdout, /^Not checked: backups of the database of DATABASE_URL, of the data folder/m);
    // Of the tests' own server. Advice, and no reason to fail or not to start.
    const advice = /the role \S+ of DATABASE_URL is a superuser/;
    assert.match(stdout, new RegExp(`look +${advice.source}`));
    assert.match(installation.logs(), advice);
  });

  test("a database whose clock differs from this machine's is named; disks, connections and what waits, too", async () => {
    const { db } = installation.database;
    await moveClock(db, "1 hour");
    const advice = await listMachineAdvice(db, installation.dataFolder);
    await setClock(db, REAL_TIME);
    assert.ok(
      advice.some((line) => /the database's clock is 3(599|600) s ahead of this machine's/.test(line)),
      advice.join("\n"),
    );
    const well: MachineState = {
      skewMs: -4_000,
      connections: 80,
      connectionsMax: 100,
      disk: { freeBytes: 10, sizeBytes: 100 },
      oldestSeconds: 600,
      deliveryLagMs: 60_000,
    };
    assert.deepEqual(describeMachine(well), []);
    const ill = [
      [{ skewMs: -6_000 }, /6 s behind this machine's/],
      [{ connections: 81 }, /81 of the database's 100 connections/],
      [{ disk: { freeBytes: 9_000_000, sizeBytes: 100_000_000 } }, /has 9 MB left/],
      [{ oldestSeconds: 660 }, /waited 11 min for a place/],
      [{ deliveryLagMs: 181_000 }, /due for 3 min/],
    ] as const;
    for (const [change, line] of ill) {
      const [found = "", ...others] = describeMachine({ ...well, ...change });
      assert.match(found, line);
      assert.deepEqual(others, []);
    }
  });

  test("keys from before there were scopes are named, with the way to narrow them; a full account, too", async () => {
    const { db } = installation.database;
    const advise = async (): Promise<string> => {
      const { code, stdout } = await latchkey(["doctor"], {
        ...installation.environment,
        LATCHKEY_STORED_MB: "1",
      });
      assert.equal(code, 0, stdout);
      return stdout;
    };
    assert.doesNotMatch(await advise(), /before there were scopes|bytes are stored/);
    const ids: string[] = [];
    for (const blueprints of ["null", "array['echo']", "array['echo']"]) {
      const rows = await db.query<{ id: string }>(
        `insert into api_key (id, account_id, name, hash, blueprint_keys, revoked_at)
         select 'key_planted' || count(*), min(account.id), 'Old', decode(lpad(to_hex(count(*)), 64, '0'), 'hex'), ${blueprints},
           case when count(*) = 3 then app_now() end
         from api_key, account returning id`,
      );
      ids.push(rows[0]?.id ?? "");
    }
    await db.query(`insert into account_usage_change (account_id, bytes) select id, 800000 from account`);
    const text = await advise();
    assert.match(
      text,
      new RegExp(
        `look +API key ${ids[1]} \\(acme, Old\\) is limited to echo.* rotate ${ids[1]} --scope runs`,
      ),
    );
    assert.match(text, new RegExp(`look +one API key is older than scopes.*: ${ids[0]}\\.`));
    assert.doesNotMatch(text, new RegExp(`${ids[2]}`));
    assert.match(
      text,
      /look +account acme: 800000 bytes are stored; over 1000000 its triggers are refused\. Purge runs/,
    );
    await db.query("delete from account_usage_change");
    await db.query("delete from api_key where name = 'Old'");
  });

  test("what sends over the internet in the clear is named, and goes on: exit code 0", async () => {
    const plain = (more: string): string => `strategy: strat_plain
account: acme
hosts: ["http://example.com"]
${more}fields: [{ key: token, type: password }]
login: { type: bearer, token: token }`;
    const { db } = installation.database;
    await putStrategyInForce(db, plain(""));
    const doctor = async (): Promise<string> => {
      const { code, stdout } = await latchkey(["doctor"], {
        ...installation.environment,
        LATCHKEY_PUBLIC_URL: "http://connect.example.com",
        LATCHKEY_INSECURE: "true",
      });
      assert.equal(code, 0, stdout);
      return stdout;
    };
    assert.match(
      await doctor(),
      /look +LATCHKEY_PUBLIC_URL \(http:\/\/connect\.example\.com\) is public[^]*look +the strategy acme\/strat_plain sends without encryption .*http:\/\/example\.com.*which `apply` now requires/,
    );
    // The start says so as well, and starts.
    await installation.serve({
      LATCHKEY_PUBLIC_URL: "http://connect.example.com",
      LATCHKEY_INSECURE: "true",
    });
    assert.match(installation.logs(), /INSECURE: the service is reached without encryption/);
    assert.match(installation.logs(), /acme\/strat_plain sends without encryption/);
    assert.equal(/the service runs as root/.test(installation.logs()), process.getuid?.() === 0);
    await installation.apply(plain("insecure: true\n"));
    assert.match(await doctor(), /acme\/strat_plain sends.*Its document says `insecure: true`/);
    await installation.apply(plain("insecure: true\nretired: true\n"));
  });

  test("a damaged credential is named: exit code 1", async () => {
    const { db } = installation.database;
    const damaged = await connect(caller, "strat_portal", { token: "canary-token-5513" });
    const swapped = await connect(caller, "strat_portal", { token: "canary-token-5514" });
    // Not only noise: a sealed text of another row must not open here either.
    await db.query(
      "update credential set sealed = set_byte(sealed, length(sealed) / 2, get_byte(sealed, length(sealed) / 2) # 1) where id = $1",
      [damaged],
    );
    await db.query(
      "update credential set sealed = (select sealed from credential where id <> all($2) limit 1) where id = $1",
      [swapped, [damaged, swapped]],
    );
    const { stdout, stderr } = await runDoctor(1);
    const line = must(
      stdout.split("\n").find((each) => each.includes("can't be opened")),
      stdout,
    );
    assert.match(line, /^wrong /);
    for (const id of [damaged, swapped]) assert.match(line, new RegExp(id));
    assert.equal(line.match(/cred_\w+/g)?.length, 2);
    assert.match(stderr, /One thing is wrong/);
    assert.doesNotMatch(stdout + stderr, /canary/);
    await db.query("delete from credential where id = any($1)", [[damaged, swapped]]).catch(() => {});
  });

  test("key files that others may read, and keys that are damaged or of another installation", async () => {
    const data = join(folder, "data");
    const fresh = (): void => {
      rmSync(data, { recursive: true, force: true });
      cpSync(installation.dataFolder, data, { recursive: true });
    };
    const wrongLines = async (): Promise<readonly string[]> => {
      const { code, stdout } = await latchkey(["doctor"], {
        ...installation.environment,
        LATCHKEY_DATA_DIR: data,
      });
      const wrong = stdout.split("\n").filter((line) => line.startsWith("wrong"));
      assert.equal(code, wrong.length === 0 ? 0 : 1);
      return wrong.filter((line) => !line.includes("rows are damaged"));
    };
    fresh();
    chmodSync(join(data, "master.key"), 0o644);
    chmodSync(join(data, "signing.key"), 0o640);
    assert.deepEqual(
      (await wrongLines()).map(
        (line) => /^wrong (signing|master) key: other users may read .*chmod 600/.exec(line)?.[1],
      ),
      ["signing", "master"],
    );
    fresh();
    writeFileSync(join(data, "signing.key"), readFileSync(join(data, "signing.key"), "utf8").slice(0, 30));
    assert.deepEqual(
      // The key itself, and the database: without the key its rows can't be told from somebody else's.
      (await wrongLines()).map((line) => /signing key is truncated/.test(line)),
      [true, true],
    );
    fresh();
    rmSync(join(data, "master.key"));
    assert.match((await wrongLines())[0] ?? "", /master key: .* does not exist/);
    await using other = await install();
    fresh();
    cpSync(join(other.dataFolder, "master.key"), join(data, "master.key"));
    assert.deepEqual(
      (await wrongLines()).map((line) => /vault: The master key does not belong to this database/.test(line)),
      [true],
    );
    fresh();
    chmodSync(data, 0o777);
    assert.match((await wrongLines())[0] ?? "", /data folder: other users may replace .*chmod 700/);
  });
});
