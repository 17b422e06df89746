// docs/database.md#behind-pgbouncer: the service through a real PgBouncer that gives each transaction another connection of the server.
import assert from "node:assert/strict";
import { test } from "node:test";
import { openPool } from "#db/connection/pool.ts";
import { openLog } from "#lib/log.ts";
import { openDatabase } from "#service/open-database.ts";
import { readConfig } from "#service/settings/settings.ts";
import { fixtureDocuments } from "../../conformance/fixtures.ts";
import { connect, openCaller } from "../caller.ts";
import { runCommand } from "../cli/program.ts";
import { optionsOf, runSuite } from "../conformance/run-suite.ts";
import { openEvents } from "../events.ts";
import { eventually, until } from "../eventually.ts";
import { freePort } from "../free-port.ts";
import { startCommitProxy, type CommitProxy } from "../idempotency/commit-proxy.ts";
import { installIdle, plantCredentials } from "../idempotency/fixture.ts";
import { checkLedger, CLIENTS, drive, planOperations } from "../idempotency/workload.ts";
import { assertInvariants } from "../invariants.ts";
import { install } from "../service.ts";
import { runLatchkey } from "../service-process.ts";
import { createSeparateRoles, type SeparateRoles } from "../service-role.ts";
import { startReceiver } from "../webhooks/stage.ts";
import { limitSessions, POOL_SIZE, startBouncer, whyNoBouncer } from "./bouncer.ts";
import { AWAY, startLoad } from "./client-load.ts";
import { afterFaults, callerOf, openFaultStage } from "./fault-stage.ts";
import { ledger, LEDGER_LOGIN, ledgerDocuments, startTarget } from "./target.ts";

const skip = whyNoBouncer() ?? false;
const PATIENCE_MS = 120_000;
const IGNORED = "statement_timeout,lock_timeout,idle_in_transaction_session_timeout";
const REQUESTS = 150;
const OPERATIONS_OF_ONE_CREDENTIAL = 5;
const RESTARTS = 3;
const LOAD_CLIENTS = 6;

/** As `serve` does it. */
async function open(environment: Readonly<Record<string, string>>): Promise<void> {
  const config = readConfig({ LATCHKEY_DATA_DIR: "/nowhere", ...environment });
  await (await openDatabase(config, openLog({ level: "silent", format: "json" }), { stays: true })).close();
}

const refusal = async (environment: Readonly<Record<string, string>>): Promise<string> =>
  await open(environment).then(
    () => "",
    (error: unknown) => (error as Error).message,
  );

async function migrated(): Promise<SeparateRoles> {
  const separate = await createSeparateRoles();
  await open(separate.environment);
  return separate;
}

test(
  "a start names what a pooler lacks, one thing after the other, and what to set",
  { skip, timeout: 200_000 },
  async () => {
    await using separate = await migrated();
    const { DATABASE_URL: direct, DATABASE_OWNER_URL } = separate.environment;
    const through = (url: string) => ({ DATABASE_URL: url, DATABASE_OWNER_URL });
    await using plain = await startBouncer(direct);
    assert.match(await refusal(through(plain.url)), /leads to a pooler: set DATABASE_DIRECT_URL/);
    {
      await using ignoring = await startBouncer(direct, { ignore_startup_parameters: IGNORED });
      assert.match(await refusal(through(ignoring.url)), /pool_mode=transaction.*set DATABASE_DIRECT_URL/);
      await using ofSessions = await startBouncer(direct, {
        ignore_startup_parameters: IGNORED,
        pool_mode: "session",
      });
      assert.equal(
        await refusal(through(ofSessions.url)),
        "",
        "a pooler of whole sessions needs no other address",
      );
      assert.match(
        await refusal({ ...through(direct), DATABASE_OWNER_URL: ownerThrough(separate, ignoring.url) }),
        /DATABASE_OWNER_URL can't be opened|DATABASE_OWNER_URL leads to a pooler/,
      );
      assert.match(
        await refusal({ ...through(plain.url), DATABASE_DIRECT_URL: ignoring.url }),
        /DATABASE_DIRECT_URL leads to a pooler in transaction mode/,
      );
    }
    const both = { ...through(plain.url), DATABASE_DIRECT_URL: direct };
    const unlimited = await refusal(both);
    assert.match(
      unlimited,
      /without a limit \(idle_in_transaction_session_timeout, lock_timeout, statement_timeout\)/,
    );
    // What the message says is what helps.
    for (const [statement] of unlimited.matchAll(/alter role [^;]+;/g)) await separate.db.query(statement);
    await plain.restart();
    assert.equal(await refusal(both), "");
    await using forgetful = await startBouncer(direct, { max_prepared_statements: 0 });
    assert.match(
      await refusal({ ...both, DATABASE_URL: forgetful.url }),
      /loses prepared statements.*max_prepared_statements/,
    );
    assert.equal(
      await refusal({ DATABASE_URL: plain.url, DATABASE_DIRECT_URL: direct }),
      "",
      "without an owner a schema that is up to date is fine",
    );
  },
);

/** The pooler's own list has one user, the service's. */
function ownerThrough({ environment }: SeparateRoles, url: string): string {
  const owner = new URL(environment.DATABASE_OWNER_URL);
  owner.host = new URL(url).host;
  return owner.href;
}

test(
  "the whole flow through PgBouncer: the conformance suite, a login, a run with its events, webhooks; doctor finds nothing wrong",
  { skip, timeout: 400_000 },
  async () => {
    await using separate = await migrated();
    const { environment, db, administrator } = separate;
    await limitSessions(db);
    await using bouncer = await startBouncer(environment.DATABASE_URL);
    const pooled = { DATABASE_URL: bouncer.url, DATABASE_DIRECT_URL: environment.DATABASE_URL };
    await using target = await closing(startTarget(ledger));
    await using receiver = await closing(startReceiver());
    await using installation = await install(
      { DATABASE_OWNER_URL: environment.DATABASE_OWNER_URL, ...pooled },
      { connectionString: bouncer.url, db, drop: async () => {} },
    );
    const targetOrigin = `http://127.0.0.1:${await freePort()}`;
    await installation.apply(fixtureDocuments(targetOrigin), ...ledgerDocuments(target.url));
    const service = await installation.serveProcess(pooled);

    const suite = await runSuite(...(await optionsOf(installation, targetOrigin, `${service.url}/api/v1`)));
    assert.equal(suite.code, 0, suite.output);

    await runCommand(installation, 0, [
      "webhooks",
      "create",
      "--account",
      "acme",
      `${receiver.url}/all`,
      "--events",
      "*",
    ]);
    const key = await installation.createKey("acme");
    const caller = openCaller(service.url, key);
    const credential = await connect(caller, "strat_ledger", LEDGER_LOGIN);
    const { body: run } = await caller.post("/blueprints/ledger/trigger", { credential_id: credential });
    const events = await openEvents(service.url, key, run.id);
    await events.next(({ data }) => data.status === "completed", PATIENCE_MS);
    const results = await caller.get(`/blueprint-runs/${run.id}/results?deliveryMethod=direct`);
    assert.equal(results.status, 200, results.text);
    await until("its webhooks have come", () =>
      ["run.started", "run.completed"].every((type) =>
        receiver.at("/all").some(({ event }) => event.type === type && event.data.id === run.id),
      ),
    );
    const [{ pooledCount, listening } = { pooledCount: 0, listening: [] }] = await administrator.query<{
      pooledCount: number;
      listening: readonly string[];
    }>(
      `select count(*) filter (where application_name = 'latchkey')::int as "pooledCount",
         array_agg(distinct application_name order by application_name) filter (where application_name <> 'latchkey') as listening
       from pg_stat_activity where datname = current_database() and usename = $1 and application_name like 'latchkey%' and application_name <> 'latchkey-test'`,
      [separate.roles.service],
    );
    assert.ok(pooledCount > 0 && pooledCount <= POOL_SIZE, `${pooledCount} connections of the server`);
    assert.deepEqual(listening, ["latchkey jobs", "latchkey liveness", "latchkey news"]);
    const doctor = await installation.command("doctor");
    assert.doesNotMatch(doctor.stdout, /pooler|database: /, doctor.stdout);
    await using ignoring = await startBouncer(environment.DATABASE_URL, {
      ignore_startup_parameters: IGNORED,
    });
    const without = { ...installation.environment, DATABASE_URL: ignoring.url, DATABASE_DIRECT_URL: "" };
    assert.match((await runLatchkey(["doctor"], without)).stdout, /wrong DATABASE_URL leads to a pooler/);
    await service.end();
    await assertInvariants(installation);
  },
);

async function closing<T extends { close(): Promise<unknown> }>(
  opening: Promise<T>,
): Promise<T & AsyncDisposable> {
  const opened = await opening;
  return Object.assign(opened, { [Symbol.asyncDispose]: async () => void (await opened.close()) });
}

for (const place of ["before", "behind"] as const)
  test(
    `connections cut around COMMIT ${place} PgBouncer: nothing lost, nothing doubled, nobody is told what is not known`,
    { skip, timeout: 400_000 },
    async () => {
      await using installation = await installIdle();
      const { connectionString, db } = installation.database;
      await limitSessions(db);
      const key = await installation.createKey("acme");
      const credentials = await plantCredentials(installation, REQUESTS / OPERATIONS_OF_ONE_CREDENTIAL);
      const operations = planOperations(place, credentials);
      const proxies: CommitProxy[] = [];
      const proxied = async (url: string): Promise<string> => {
        // PgBouncer gives prepared statements names of its own, so behind it any COMMIT may be one that decides.
        const proxy = await startCommitProxy(url, place === "behind" ? { cuts: "any" } : {});
        proxies.push(proxy);
        return proxy.url;
      };
      const server = place === "behind" ? await proxied(connectionString) : connectionString;
      await using bouncer = await startBouncer(server);
      const url = place === "before" ? await proxied(bouncer.url) : bouncer.url;
      try {
        const service = await installation.serveProcess(
          { DATABASE_URL: url, DATABASE_DIRECT_URL: connectionString },
          ["api"],
        );
        const cuts = REQUESTS / OPERATIONS_OF_ONE_CREDENTIAL;
        proxies[0]?.start(cuts);
        const result = await drive(operations, key, () => service.url);
        assert.deepEqual(proxies[0]?.cuts, { after: cuts / 3, late: cuts / 3, before: cuts / 3 });
        // One that the server has got, now or later, is found out; each request that shared one that it has not got is answered 503.
        assert.ok(result.serverErrors <= cuts * CLIENTS, `${result.serverErrors} answers of 503`);
        assert.equal(result.replays, 0, "what was committed was answered as such");
        assert.equal(result.lostConnections, 0);
        await checkLedger(installation, operations, result, { url: service.url, apiKey: key });
        await service.end("SIGKILL");
      } finally {
        for (const proxy of proxies) await proxy.close();
      }
    },
  );

test(
  `PgBouncer killed ${RESTARTS} times under load: nothing that was acknowledged is lost, no run loses its lease, sessions of the server stay`,
  { skip, timeout: 400_000 },
  async (context) => {
    await using stage = await openFaultStage();
    const { connectionString, db } = stage.installation.database;
    await limitSessions(db);
    await using bouncer = await startBouncer(connectionString);
    const pooled = { DATABASE_URL: bouncer.url, DATABASE_DIRECT_URL: connectionString };
    const [service, worker] = await Promise.all([
      stage.installation.serveProcess(pooled),
      stage.installation.serveProcess(pooled, ["worker"]),
    ]);
    const caller = callerOf(stage, service);
    const direct = openPool({ connectionString }, { applicationName: "latchkey-test", max: 1 });
    const sessions = async (): Promise<readonly string[]> =>
      (
        await direct.query<{ session: string }>(
          `select application_name || ' ' || pid as session from pg_stat_activity
           where datname = current_database() and application_name in ('latchkey liveness', 'latchkey news') order by 1`,
        )
      ).map(({ session }) => session);
    await using load = startLoad(caller, "/blueprints/sends/trigger", {}, LOAD_CLIENTS, "bouncer");
    const before = await eventually("both listen", async () => {
      const found = await sessions();
      return found.length === 4 ? found : undefined;
    });
    for (let restart = 0; restart < RESTARTS; restart++) {
      const accepted = load.accepted.length;
      await until("runs are accepted", () => load.accepted.length > accepted + LOAD_CLIENTS);
      await bouncer.restart();
      const backAt = performance.now();
      await until("it serves again", () => load.servedAt > backAt);
    }
    await load.stop();
    const rows = await stage.outlived(caller, load.accepted);
    context.diagnostic(JSON.stringify({ runs: rows.length, refusals: [...load.refusals] }));
    assert.deepEqual(
      [...load.refusals.keys()].filter((refusal) => refusal !== AWAY),
      [],
    );
    assert.ok(rows.every(({ status }) => status === "completed"));
    assert.deepEqual(await sessions(), before);
    assert.deepEqual(await direct.query("select id from run where lost_leases > 0"), []);
    await direct.end();
    await stage.check(caller, load.accepted);
    await afterFaults(stage);
    await Promise.all([service.end("SIGKILL"), worker.end("SIGKILL")]);
  },
);
