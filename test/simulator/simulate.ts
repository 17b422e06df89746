import { mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { handleFailpoints } from "#lib/failpoint.ts";
import { Customers } from "./customers.ts";
import type { Fault } from "./faults.ts";
import { fixChance } from "./fixed-chance.ts";
import { BACK_AFTER_MS, Fleet } from "./fleet.ts";
import type { Seen } from "./oracle.ts";
import { ask } from "./oracles.ts";
import { planFaultsInto } from "./plan-faults.ts";
import type { Surroundings } from "./processes.ts";
import { CANCELS, FAULTS_MS, scenarioOf, type Scenario } from "./scenario.ts";
import { NewsNetwork } from "./sim-news.ts";
import { SimNetwork } from "./sim-network.ts";
import type { SimProcess } from "./sim-process.ts";
import { SimServer } from "./sim-server.ts";
import { SimStore } from "./sim-store.ts";
import type { Stage } from "./stage.ts";
import { ScriptedTarget, WELL } from "./target.ts";
import { World, type StoryLine } from "./world.ts";

/** In this time after the last fault every run ends: docs/operate.md, How long a run may wait; and what these Blueprints themselves wait for. */
export const LIVENESS_MS = 240_000;
/** Between two looks at what is not looked at after each event. */
const MOMENT_MS = 2_000;
const EVENTS_MAX = 100_000;

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

/** Carries out what a seed stands for: the same seed, the same faults and the same program give the same trace. */
export async function simulate(stage: Stage, options: SimulationOptions): Promise<Simulated> {
  const { seed, onEvent } = options;
  const { scenario, workers, faults: planned } = scenarioOf(seed);
  const faults = options.faults ?? planned;
  await using opened = new AsyncDisposableStack();
  const { database } = stage;
  const { admin } = database;
  await database.reset();
  const folder = join(stage.folder, `seed-${seed}`);
  mkdirSync(folder, { recursive: true });
  opened.defer(() => rmSync(folder, { recursive: true, force: true }));
  const world = new World({ seed, listBlocked: async () => await database.listBlocked(), onEvent });
  opened.use(fixChance(seed, () => world.nowMs));
  const server = new SimServer(database, world);
  const around: Surroundings = {
    world,
    stage,
    folder,
    server,
    news: new NewsNetwork(world),
    target: new ScriptedTarget(world, scenario.mood ?? WELL),
    store: new SimStore(),
    network: new SimNetwork(world),
  };
  const onRejection = (error: unknown): void =>
    void world.surprises.push(error instanceof Error ? String(error.stack) : String(error));
  process.on("unhandledRejection", onRejection);
  opened.defer(() => void process.off("unhandledRejection", onRejection));
  const fleet = new Fleet(around, workers);
  opened.defer(async () => {
    handleFailpoints(null);
    fleet.stopAll();
    world.end();
    await world.work.settle();
    await server.endSessions();
  });
  const customers = new Customers(world, stage, around.target, () => fleet.apis());
  await fleet.startAll();
  planFaultsInto(around, fleet, faults, FAULTS_MS);
  planCustomers(world, customers, scenario);
  around.target.onPoison = (self) => poison(world, fleet, self);
  const seen: Seen = { world, around, db: admin, target: around.target, customers, fleet };
  const violation = await watch(seen, scenario, faults);
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

/** Whether anything breaks, from the first event until all has ended. */
async function watch(
  seen: Seen,
  { ordersMs }: Scenario,
  faults: readonly Fault[],
): Promise<Violation | null> {
  const { world, customers } = seen;
  const plannedMs = faults.map(({ kind, atMs, forMs }) => (kind === "point" ? 0 : atMs + forMs));
  let nextMomentMs = MOMENT_MS;
  for (;;) {
    const { admissions, effects } = world.changes;
    if (!(await world.step())) break;
    const isMoment = world.nowMs >= nextMomentMs;
    if (isMoment) nextMomentMs = world.nowMs + MOMENT_MS;
    const found =
      (await ask(seen, "step")) ??
      (world.changes.admissions === admissions ? null : await ask(seen, "admissions")) ??
      (world.changes.effects === effects ? null : await ask(seen, "effects")) ??
      (isMoment ? await ask(seen, "moment") : null);
    if (found) return { ...found, atMs: world.nowMs };
    const lastFaultMs = Math.max(ordersMs, world.faultsUntilMs, ...plannedMs);
    if (isMoment && world.nowMs > lastFaultMs) {
      const open = await listOpen(seen);
      if (open.length === 0) break;
      const isLate = world.nowMs > lastFaultMs + LIVENESS_MS || world.events > EVENTS_MAX;
      if (isLate) return { oracle: "every run ends", atMs: world.nowMs, what: open.join("; ") };
    }
  }
  if (customers.orders.length === 0) throw new Error("The simulation has not ordered anything.");
  for (const when of ["effects", "moment", "end"] as const) {
    const found = await ask(seen, when);
    if (found) return { ...found, atMs: world.nowMs };
  }
  return null;
}

/** Orders without an acknowledged run, and runs that have not ended. */
async function listOpen({ db, customers }: Seen): Promise<readonly string[]> {
  const unheard = customers.orders.filter(({ acknowledged }) => acknowledged.length === 0);
  const rows = await db.query<{ place: string }>({
    name: "list_open",
    text: `select id || ' (' || coalesce(convert_from(name, 'UTF8'), '') || ') is ' || status || '/' || progress_step
       || case when lease_owner is not null then ', with ' || lease_owner else '' end
       || case when parked_at is not null then ', parked' else '' end
       || case when line is not null then ', in line ' || line else '' end as place
     from run where ended_at is null order by id`,
    values: [],
  });
  return [...unheard.map(({ key }) => `${key} was never acknowledged`), ...rows.map(({ place }) => place)];
}

/** A request has ended the process that sent it. */
function poison(world: World, fleet: Fleet, self: SimProcess): void {
  if (self.isCrashed) return;
  world.tell("fault", `${self.name} ends by its run`);
  self.crash();
  world.after(BACK_AFTER_MS, "back after its run", () => fleet.startAgain(self));
}

function planCustomers(world: World, customers: Customers, scenario: Scenario): void {
  const random = world.random.fork("plan");
  for (let order = 0; order < scenario.orders; order++) {
    const of = scenario.orderOf(random, order);
    world.after(of?.atMs ?? random.between(300, scenario.ordersMs), "an order", () => customers.place(of));
  }
  for (let read = 0; read < 3; read++)
    world.after(random.between(5_000, 1.5 * FAULTS_MS), "a reader", () => customers.read());
  const { count, fromMs, untilMs } = scenario.cancels ?? CANCELS;
  for (let cancel = 0; cancel < count; cancel++)
    world.after(random.between(fromMs, untilMs), "a cancel", () => customers.cancel());
  for (let purge = 0; purge < 3; purge++)
    world.after(random.between(10_000, 1.5 * FAULTS_MS), "a deletion", () => customers.purge());
  const decide = (): void => {
    customers.decide();
    world.after(random.between(2_000, 8_000), "an operator looks", decide);
  };
  world.after(5_000, "an operator looks", decide);
}
