import { mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { openPool, type Database } from "#db/connection/pool.ts";
import { guardRows } from "#db/signing/signed-rows.ts";
import { openEvaluator } from "#expressions/evaluator.ts";
import { must } from "#lib/assert.ts";
import { handleFailpoints, type Failpoint } from "#lib/failpoint.ts";
import type { Server } from "./held-database.ts";
import { Customers } from "./customers.ts";
import { APIS, describeFault, planFaults, WORKERS, type Fault } from "./faults.ts";
import { fixChance } from "./fixed-chance.ts";
import { ORACLES, type Oracle, type Seen } from "./oracles.ts";
import { startApi, startWorker, type Parts, type SimApi, type Surroundings } from "./processes.ts";
import { currentProcess, type Network, type SimProcess } from "./sim-process.ts";
import { NewsNetwork } from "./sim-news.ts";
import { SimStore } from "./sim-store.ts";
import type { Stage } from "./stage.ts";
import { ScriptedTarget, WELL } from "./target.ts";
import { World, type StoryLine } from "./world.ts";

/** Faults come until then; after that everything must end. */
const FAULTS_MS = 60_000;
/** In this time after the last fault every run ends: docs/operate.md, How long a run may wait; and what these Blueprints themselves wait for. */
export const LIVENESS_MS = 240_000;
const ORDERS = 24;
/** The database's clock moves so much at a time: each move is a statement. */
const TICK_MS = 10;
const MOMENT_EVENTS = 500;
const EVENTS_MAX = 200_000;

export interface SimulationOptions {
  readonly seed: number;
  /** Of the seed's faults, those that happen; all unless given. */
  readonly faults?: readonly Fault[];
  readonly onEvent?: ((line: string) => void) | undefined;
}

export interface Violation {
  readonly oracle: string;
  readonly atMs: number;
  readonly what: string;
}

export interface Simulated {
  readonly seed: number;
  readonly faults: readonly Fault[];
  readonly violation: Violation | null;
  readonly story: readonly StoryLine[];
  /** Of all that happened: the same for the same seed. */
  readonly digest: string;
  readonly events: number;
  readonly virtualMs: number;
  readonly runs: number;
}

/** The faults of a seed. */
export const faultsOf = (seed: number): readonly Fault[] =>
  planFaults(new World({ seed, listBlocked: async () => [] }).random.fork("faults"), FAULTS_MS);

/** Carries out what a seed stands for: the same seed, the same faults and the same program give the same trace. */
export async function simulate(stage: Stage, options: SimulationOptions): Promise<Simulated> {
  const { seed, faults = faultsOf(seed) } = options;
  await using opened = new AsyncDisposableStack();
  const database = await stage.clone();
  opened.defer(async () => await database.drop());
  const connectionString = withoutSync(database.connectionString);
  guardRows(database.db, stage.signing, null);
  const monitor = openPool({ connectionString }, { applicationName: "simulation", max: 2 });
  opened.defer(async () => await monitor.end());
  const folder = join(stage.folder, `seed-${seed}`);
  mkdirSync(folder, { recursive: true });
  opened.defer(() => rmSync(folder, { recursive: true, force: true }));
  const world = new World({
    seed,
    listBlocked: async () => await listBlocked(monitor),
    onEvent: options.onEvent,
  });
  opened.use(fixChance(seed, () => world.nowMs));
  const conditions = new Conditions(world);
  const expressions = openEvaluator({ threads: 1 });
  opened.defer(async () => await expressions.close());
  const pools: Database[] = [];
  opened.defer(async () => void (await Promise.all(pools.map(async (pool) => await pool.end()))));
  const around: Surroundings = {
    world,
    stage,
    folder,
    server: serverOf(world, conditions, monitor, connectionString),
    connectionString,
    news: new NewsNetwork(),
    target: new ScriptedTarget(world),
    store: new SimStore(),
    network: conditions.network,
    expressions,
    pools,
  };
  const onRejection = (error: unknown): void =>
    void world.surprises.push(error instanceof Error ? String(error.stack) : String(error));
  process.on("unhandledRejection", onRejection);
  opened.defer(() => void process.off("unhandledRejection", onRejection));
  const fleet = new Fleet(around);
  opened.defer(async () => {
    handleFailpoints(null);
    fleet.stopAll();
    world.end();
    await world.work.settle();
  });
  const customers = new Customers(world, around.target, () => fleet.apis());
  await customers.learnAccounts(database.db);
  await fleet.startAll();
  planFaultsInto(around, fleet, conditions, faults);
  planCustomers(world, customers);
  const seen: Seen = { world, db: database.db, target: around.target, customers };
  const violation = await watch(seen, faults);
  return {
    seed,
    faults,
    violation,
    story: world.story,
    digest: world.digest(),
    events: world.events,
    virtualMs: world.nowMs,
    runs: customers.orders.length,
  };
}

/** No server crashes here, so none needs to wait for its disk. */
function withoutSync(connectionString: string): string {
  const url = new URL(connectionString);
  url.searchParams.set("options", "-c synchronous_commit=off");
  return url.href;
}

/** Whether anything breaks, from the first event until all has ended. */
async function watch(seen: Seen, faults: readonly Fault[]): Promise<Violation | null> {
  const { world, customers } = seen;
  // What waits for a point may come as late as that.
  const lastFaultMs = Math.max(
    ...faults.map(({ kind, atMs, forMs }) => (kind === "point" ? FAULTS_MS : atMs) + forMs),
    FAULTS_MS,
  );
  for (;;) {
    if (!(await world.step())) break;
    const isMoment = world.events % MOMENT_EVENTS === 0;
    const found = await ask(seen, isMoment ? ["step", "moment"] : ["step"]);
    if (found) return found;
    if (isMoment && world.nowMs > lastFaultMs) {
      const open = await listOpen(seen);
      if (open.length === 0) break;
      const isLate = world.nowMs > lastFaultMs + LIVENESS_MS || world.events > EVENTS_MAX;
      if (isLate) return { oracle: "every run ends", atMs: world.nowMs, what: open.join("; ") };
    }
  }
  if (customers.orders.length === 0) throw new Error("The simulation has not ordered anything.");
  return await ask(seen, ["step", "moment", "end"]);
}

async function ask(seen: Seen, when: readonly Oracle["when"][]): Promise<Violation | null> {
  for (const oracle of ORACLES) {
    if (!when.includes(oracle.when)) continue;
    const answer = oracle.look(seen);
    const [what] = Array.isArray(answer) ? (answer as readonly string[]) : await answer;
    if (what !== undefined) return { oracle: oracle.name, atMs: seen.world.nowMs, what };
  }
  return null;
}

/** Orders without an acknowledged run, and runs that have not ended. */
async function listOpen({ db, customers }: Seen): Promise<readonly string[]> {
  const unheard = customers.orders.filter(({ acknowledged }) => acknowledged.length === 0);
  const rows = await db.query<{ place: string }>(
    `select id || ' (' || coalesce(convert_from(name, 'UTF8'), '') || ') is ' || status || '/' || progress_step
       || case when lease_owner is not null then ', with ' || lease_owner else '' end
       || case when parked_at is not null then ', parked' else '' end
       || case when line is not null then ', in line ' || line else '' end as place
     from run where ended_at is null order by id`,
  );
  return [...unheard.map(({ key }) => `${key} was never acknowledged`), ...rows.map(({ place }) => place)];
}

async function listBlocked(monitor: Database): Promise<readonly number[]> {
  const rows = await monitor.query<{ pid: number }>(
    `select pid from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'
       and cardinality(pg_blocking_pids(pid)) > 0 order by pid`,
  );
  return rows.map(({ pid }) => pid);
}

/** What the world is like just now, for all processes. */
class Conditions {
  lossRate = 0;
  latencyMs = 2;
  /** How far the database's clock is off. */
  stepMs = 0;
  readonly network: Network;

  constructor({ random: worldRandom }: World) {
    const random = worldRandom.fork("network");
    this.network = {
      latencyMs: () => random.between(0.05, random.isHit(0.02) ? 10 * this.latencyMs : this.latencyMs),
      fate: () => {
        if (!random.isHit(this.lossRate)) return "arrives";
        return random.isHit(0.5) ? "request_lost" : "answer_lost";
      },
    };
  }
}

function serverOf(world: World, conditions: Conditions, monitor: Database, connectionString: string): Server {
  let shownMs = -1;
  return {
    source: { connectionString },
    showTime: async () => {
      const ms = Math.max(0, TICK_MS * Math.floor((world.nowMs + conditions.stepMs) / TICK_MS));
      if (ms === shownMs) return;
      shownMs = ms;
      await monitor.query({ name: "show_time", text: "select setval('simulated_ms', $1)", values: [ms] });
    },
    cancel: async (pid) => void (await monitor.query("select pg_cancel_backend($1)", [pid])),
  };
}

/** The processes that are there, by the names of their machines. */
class Fleet {
  readonly #around: Surroundings;
  readonly #up = new Map<string, Parts>();
  readonly #starts = new Map<string, number>();

  constructor(around: Surroundings) {
    this.#around = around;
  }

  async startAll(): Promise<void> {
    for (const name of [...APIS, ...WORKERS]) await this.start(name);
  }

  async start(name: string): Promise<void> {
    const count = (this.#starts.get(name) ?? 0) + 1;
    this.#starts.set(name, count);
    const unique = count === 1 ? name : `${name}.${count}`;
    const isApi = (APIS as readonly string[]).includes(name);
    const start = isApi ? startApi(this.#around, unique) : startWorker(this.#around, unique);
    this.#up.set(name, await start);
  }

  /** In place of a process that has crashed; a quarantine is started by its worker. */
  async startAgain(crashed: SimProcess): Promise<void> {
    for (const [name, { self }] of this.#up)
      if (self === crashed) {
        this.#around.world.tell("fault", `${name} is started again`);
        await this.start(name);
      }
  }

  apis(): readonly SimApi[] {
    return APIS.flatMap((name) => {
      const parts = this.#up.get(name);
      return parts && !parts.self.isCrashed ? [parts as SimApi] : [];
    });
  }

  find(name: string): Parts | undefined {
    return this.#up.get(name);
  }

  /** So that nothing is left under way when the database goes. */
  stopAll(): void {
    for (const { self } of this.#up.values()) if (!self.isCrashed) self.crash();
  }
}

function planFaultsInto(
  { world, news, target, store }: Surroundings,
  fleet: Fleet,
  conditions: Conditions,
  faults: readonly Fault[],
): void {
  const points: AwaitedPoint[] = [];
  world.after(FAULTS_MS, "faults are over", () => void points.splice(0));
  handleFailpoints((name) => atPoint(world, fleet, points, name));
  for (const fault of faults) {
    const { atMs, forMs } = fault;
    const begin = (act: () => void): void =>
      void world.after(atMs, `fault ${fault.kind}`, () => {
        world.tell("fault", describeFault(fault));
        act();
      });
    const end = (act: () => void): void => void world.after(atMs + forMs, `end of ${fault.kind}`, act);
    switch (fault.kind) {
      case "crash":
        begin(() => fleet.find(fault.of)?.self.crash());
        if (!fault.isForGood)
          end(() => {
            if (fleet.find(fault.of)?.self.isCrashed !== true) return;
            world.tell("fault", `${fault.of} is started again`);
            void world.work.track(fleet.start(fault.of));
          });
        break;
      case "pause": {
        let paused: Parts | undefined;
        begin(() => (paused = fleet.find(fault.of))?.self.pause());
        end(() => {
          world.tell("fault", `${fault.of} goes on`);
          paused?.self.resume();
        });
        break;
      }
      case "point":
        begin(() => void points.push({ point: fault.point, does: fault.does, forMs }));
        break;
      case "cut":
        begin(() => fleet.find(fault.of)?.self.cut());
        break;
      case "network":
        begin(() => Object.assign(conditions, { lossRate: fault.lossRate, latencyMs: fault.latencyMs }));
        end(() => Object.assign(conditions, { lossRate: 0, latencyMs: 2 }));
        break;
      case "store":
        begin(() => (store.isDown = true));
        end(() => (store.isDown = false));
        break;
      case "news":
        begin(() => (news.lost = fault.lossRate));
        end(() => (news.lost = 0));
        break;
      case "target":
        begin(() => (target.mood = fault.mood));
        end(() => (target.mood = WELL));
        break;
      case "clock":
        begin(() => (conditions.stepMs += fault.stepMs));
        break;
    }
  }
}

interface AwaitedPoint {
  readonly point: Failpoint;
  readonly does: "crash" | "pause";
  readonly forMs: number;
}

/** A process has come to a point: it may be the one that a fault waits for. */
function atPoint(
  world: World,
  fleet: Fleet,
  points: AwaitedPoint[],
  name: Failpoint,
): Promise<void> | undefined {
  const self = currentProcess();
  const place = points.findIndex(({ point }) => point === name);
  if (self === undefined || !self.isUp || place < 0) return undefined;
  const { does, forMs } = must(points.splice(place, 1)[0], "the point");
  world.tell("fault", `${self.name} ${does === "crash" ? "crashes" : "stands still"} at ${name}`);
  if (does === "crash") {
    self.crash();
    world.after(forMs, "back after a point", () => void world.work.track(fleet.startAgain(self)));
  } else {
    self.pause();
    world.after(forMs, "goes on after a point", () => {
      world.tell("fault", `${self.name} goes on`);
      self.resume();
    });
  }
  return self.untilUp();
}

function planCustomers(world: World, customers: Customers): void {
  const random = world.random.fork("plan");
  for (let order = 0; order < ORDERS; order++)
    world.after(random.between(500, FAULTS_MS), "an order", () => customers.place());
  for (let cancel = 0; cancel < 3; cancel++)
    world.after(random.between(5_000, FAULTS_MS), "a cancel", () => customers.cancel());
  for (let purge = 0; purge < 2; purge++)
    world.after(random.between(20_000, 2 * FAULTS_MS), "a deletion", () => customers.purge());
  const decide = (): void => {
    customers.decide();
    world.after(random.between(3_000, 15_000), "an operator looks", decide);
  };
  world.after(10_000, "an operator looks", decide);
}
