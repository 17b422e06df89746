// docs/decisions/0033: an earlier version serves while this one's migrations are applied, and its processes are replaced one after the
// other under 200 requests a second: none fails, every run ends once, and targets have seen every write once.
import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { openCaller, submitHostedForm, type Caller } from "../caller.ts";
import { createEmptyDatabase } from "../database.ts";
import { eventually } from "../eventually.ts";
import { freePort } from "../free-port.ts";
import { runLatchkey, startProcess, type ServiceProcess, type ServiceProgram } from "../service-process.ts";
import { EARLIER, findEarlierCommit, openEarlierBuild } from "../upgrade/earlier-build.ts";
import { startBalancer } from "./balancer.ts";
import { afterFaults, openFaultStage, type FaultStage } from "./fault-stage.ts";
import { openLoadClients, startSteadyLoad, type LoadClients } from "./steady-load.ts";

const commit = findEarlierCommit();
const skip = commit === null ? "needs a clone with its history, for the earlier version" : false;

const PER_SECOND = 200;
const SETTLE_MS = 3_000;
const PATIENCE_MS = 120_000;
const HELD = 8;

interface Accepted {
  readonly id: string;
  readonly path: string;
  readonly body: string;
  readonly key: string;
}

/** What customers' backends and end users do all day. */
class Customers {
  readonly accepted: Accepted[] = [];
  connections = 0;
  readonly #clients: LoadClients;
  readonly #caller: Caller;
  readonly #credential: string;
  readonly #done: readonly string[];

  constructor(clients: LoadClients, caller: Caller, credential: string, done: readonly string[]) {
    this.#clients = clients;
    this.#caller = caller;
    this.#credential = credential;
    this.#done = done;
  }

  async ask(number: number): Promise<string | undefined> {
    if (number % 100 === 50) return await this.#trigger("whole", number, { credential_id: this.#credential });
    if (number % 40 === 13) return await this.#connect();
    if (number % 40 === 33) return await this.#repeat(number);
    if (number % 20 === 5) return await this.#trigger("sends", number, { rows: [] });
    if (number % 20 === 10) return await this.#trigger("plain", number, { rows: [{ n: number }] });
    const one = (of: readonly string[]): string => of[number % of.length] ?? "";
    if (number % 20 === 15) return await this.#read(`${one(this.#done)}/results?deliveryMethod=direct`);
    const under = this.accepted.length === 0 ? this.#done : this.accepted.map(({ id }) => id);
    return await this.#read(`${one(under)}/status`);
  }

  async #read(path: string): Promise<string | undefined> {
    return unless(200, `GET ${path}`, await this.#clients.send("GET", `/api/v1/blueprint-runs/${path}`));
  }

  async #trigger(way: string, number: number, content: unknown): Promise<string | undefined> {
    const path = `/api/v1/blueprints/${way}/trigger`;
    const [body, key] = [JSON.stringify(content), `${way}-${number}`];
    const answer = await this.#clients.send("POST", path, body, { "idempotency-key": key });
    const failure = unless(202, path, answer);
    if (failure === undefined) this.accepted.push({ id: idOf(answer), path, body, key });
    return failure;
  }

  /** A backend that does not know whether it was heard: most were, by whichever version. */
  async #repeat(number: number): Promise<string | undefined> {
    const run = this.accepted[(number * 7) % Math.max(1, this.accepted.length)];
    if (run === undefined) return undefined;
    const answer = await this.#clients.send("POST", run.path, run.body, { "idempotency-key": run.key });
    const failure = unless(202, `repeated ${run.path}`, answer);
    return failure ?? (idOf(answer) === run.id ? undefined : `${run.key} began a second run`);
  }

  /** A session, its form, the credential, and its delete: each may meet another version. */
  async #connect(): Promise<string | undefined> {
    const made = await this.#caller.post("/credential-sessions", { strategy_id: "strat_portal" });
    if (made.status !== 201) return `session ${made.status} ${made.text}`;
    const values = { username: "bea", password: "another-portal-password" };
    const form = await submitHostedForm(made.body.hosted_url, values);
    if (form.status >= 400) return `form ${form.status}`;
    const { status, text, body } = await this.#caller.get(`/credential-sessions/${made.body.id}`);
    if (status !== 200 || body.status !== "completed") return `session read ${status} ${text}`;
    const deleted = await this.#caller.delete(`/credentials/${body.credential_id}`);
    if (deleted.status !== 204) return `delete ${deleted.status} ${deleted.text}`;
    this.connections += 1;
    return undefined;
  }
}

const idOf = (answer: Awaited<ReturnType<LoadClients["send"]>>): string =>
  typeof answer === "string" ? "" : (JSON.parse(answer.text) as { id: string }).id;

function unless(
  status: number,
  what: string,
  answer: Awaited<ReturnType<LoadClients["send"]>>,
): string | undefined {
  if (typeof answer === "string") return `${what}: ${answer}`;
  return answer.status === status ? undefined : `${what}: ${answer.status} ${answer.text}`;
}

/** A process behind the balancer, and what it logged of requests that it could not answer as they wanted. */
interface Served {
  readonly service: ServiceProcess;
  readonly url: string;
  failed(): readonly string[];
}

async function serve(
  { installation }: FaultStage,
  balancer: Awaited<ReturnType<typeof startBalancer>>,
  program?: ServiceProgram,
): Promise<Served> {
  const port = String(await freePort());
  const environment = {
    ...installation.environment,
    LATCHKEY_PORT: port,
    LATCHKEY_PUBLIC_URL: balancer.url,
    LATCHKEY_TRUSTED_PROXIES: "127.0.0.0/8",
    LATCHKEY_DRAIN_SECONDS: "30",
    LATCHKEY_MIGRATE: "off",
  };
  let log = "";
  const service = await startProcess(environment, ["api", "worker"], (text) => (log += text), { program });
  // Not what it prints, which is where the public finds it.
  const url = `http://127.0.0.1:${port}`;
  balancer.add(url);
  return { service, url, failed: () => log.split("\n").filter((line) => line.includes("request failed")) };
}

test(
  `a rolling upgrade from ${EARLIER} under load: no request fails, and every run ends once`,
  { skip, timeout: 600_000 },
  async (context) => {
    using earlier = openEarlierBuild(commit ?? "");
    await using stage = await openFaultStage({}, await createEmptyDatabase(), { program: earlier.program });
    await using balancer = await startBalancer();
    using clients = openLoadClients(balancer.url, stage.key);
    const caller = openCaller(balancer.url, stage.key);
    await using services = new AsyncDisposableStack();
    const all: Served[] = [];
    const start = async (program?: ServiceProgram): Promise<Served> => {
      const served = await serve(stage, balancer, program);
      all.push(served);
      services.defer(async () => void (await served.service.end("SIGKILL")));
      return served;
    };
    const old = await Promise.all([start(earlier.program), start(earlier.program)]);
    const done = await Promise.all(
      Array.from({ length: 3 }, async () => await stage.trigger(caller, "sends")),
    );
    await stage.ended(done);
    const release = stage.holdReads();
    const credential = await stage.credential(caller);
    const held = await Promise.all(
      Array.from({ length: HELD }, async () => await stage.trigger(caller, "reads")),
    );
    await eventually(
      "runs are reading",
      async () => held.every((run) => stage.reads(run).length > 0) || undefined,
      PATIENCE_MS,
    );
    const customers = new Customers(clients, caller, credential, done);
    await using load = startSteadyLoad(PER_SECOND, async (number) => await customers.ask(number));
    await sleep(SETTLE_MS);

    const { environment, database } = stage.installation;
    const migrations = async (): Promise<readonly unknown[]> =>
      await database.db.query("select name from schema_migration");
    const count = (await migrations()).length;
    const migrated = await runLatchkey(["migrate"], environment);
    assert.equal(migrated.code, 0, migrated.stderr);
    assert.ok((await migrations()).length > count, "there was something to migrate");
    await sleep(SETTLE_MS);
    const codes: (number | null)[] = [];
    for (const { service, url } of old) {
      await start();
      await sleep(SETTLE_MS);
      codes.push(await service.end("SIGTERM"));
      balancer.remove(url);
    }
    await sleep(SETTLE_MS);
    const told = await load.stop();
    release();
    const runs = [...done, ...held, ...customers.accepted.map(({ id }) => id)];
    const rows = await stage.ended(runs);
    const { connections } = customers;
    context.diagnostic(
      JSON.stringify({ ...told, runs: runs.length, connections, failures: [...load.failures] }),
    );
    assert.deepEqual([...load.failures], [], all.flatMap((served) => served.failed()).join("\n"));
    assert.deepEqual(codes, [0, 0]);
    assert.ok(told.sent > PER_SECOND && connections > 0);
    assert.deepEqual([...new Set(rows.map(({ status }) => status))], ["completed"]);
    await stage.check(caller, runs);
    await afterFaults(stage);
  },
);
