import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { AccountQuotas } from "#actions/runs/account-quotas.ts";
import { purgeOldRuns } from "#actions/runs/purge-runs.ts";
import { closeAudit } from "#actions/audit/close-audit.ts";
import type { Services } from "#actions/services.ts";
import type { Database } from "#db/connection/pool.ts";
import type { RunChanges } from "#db/runs/run-notifier.ts";
import { guardRows } from "#db/signing/signed-rows.ts";
import { LoginTurns } from "#engine/login/login-turns.ts";
import { SelfFence } from "#engine/self-fence.ts";
import type { EngineServices } from "#engine/services.ts";
import { LiveViews } from "#engine/live-views.ts";
import { Paces } from "#engine/waiting/paces.ts";
import type { Evaluator } from "#expressions/evaluator.ts";
import { limits } from "#domain/limits.ts";
import { openLog, type Log } from "#lib/log.ts";
import { Worker } from "#worker/worker.ts";
import { HeldDatabase } from "./held-database.ts";
import { holdSession } from "./held-session.ts";
import type { NewsNetwork } from "./sim-news.ts";
import type { SimNetwork } from "./sim-network.ts";
import { SimProcess } from "./sim-process.ts";
import type { SimServer } from "./sim-server.ts";
import type { SimStore } from "./sim-store.ts";
import type { Stage } from "./stage.ts";
import type { ScriptedTarget } from "./target.ts";
import type { World } from "./world.ts";

/** Runs of a worker at a time. */
export const PLACES = 3;
const HOUSEKEEPING_EVERY_MS = 60_000;
const CLOSE_AUDIT_EVERY_MS = 15_000;

/** What all processes of a simulation share. */
export interface Surroundings {
  readonly world: World;
  readonly stage: Stage;
  readonly server: SimServer;
  /** Of its processes. */
  readonly folder: string;
  readonly news: NewsNetwork;
  readonly target: ScriptedTarget;
  readonly store: SimStore;
  readonly network: SimNetwork;
}

/** The product's parts in one simulated process. */
export interface Parts {
  readonly self: SimProcess;
  readonly db: Database;
  readonly news: RunChanges;
  readonly log: Log;
}

function openParts(around: Surroundings, name: string): Parts {
  const { world, server, network, stage } = around;
  const self = new SimProcess(name, world, network);
  const log = openLog({ level: "info", format: "json" }, { write: (line) => tellLog(around, self, line) });
  const { database: db } = new HeldDatabase(server, self);
  guardRows(db, stage.signing, null);
  return { self, db, news: around.news.join(self), log };
}

/** What the worker logs when it finds that others have its runs. */
const TAKEN_OVER = "another process took this worker's runs over";
const WELL_MARGIN_MS = 2_000;

/** What a process logs is part of the story. */
function tellLog({ world, network }: Surroundings, self: SimProcess, line: string): void {
  const { level: _level, time: _time, msg, at: _at, ...fields } = JSON.parse(line) as Record<string, unknown>;
  const values = Object.entries(fields).map(([name, value]) => ` ${name}=${String(value)}`);
  world.tell(self.name, `logs: ${String(msg)}${values.join("")}`);
  const wellMs = world.nowMs - Math.max(self.disturbedAtMs, network.roughUntilMs());
  // Neither a database that stands still nor a clock that steps may cost a run its worker.
  if (msg === TAKEN_OVER && wellMs > limits.heartbeatStaleMs + WELL_MARGIN_MS)
    world.surprises.push(
      `${self.name} was taken over, and nothing has disturbed it for ${Math.round(wellMs)} ms`,
    );
}

/** A process with the worker role. */
export interface SimWorker extends Parts {
  /** null: it has not started yet. */
  running: Worker | null;
}

/** `onFailed`: it could not start, and has ended, as the service does then. */
export function startWorker(
  around: Surroundings,
  name: string,
  onFailed: (self: SimProcess) => void,
): SimWorker {
  const parts = openParts(around, name);
  const { self } = parts;
  const engine = engineOf(around, parts);
  const openSession = async (onLost: () => void): Promise<Database> =>
    await holdSession(around.server, self, onLost);
  // A suspect's process is one beside the worker, and ends with it.
  const quarantine = {
    look: (isWaiting: boolean, onDeath: () => void): void => {
      if (isWaiting) startQuarantine(onDeath);
    },
    stop: async (): Promise<void> => {},
  };
  let isQuarantineUp = false;
  const startQuarantine = (onDeath: () => void): void => {
    if (isQuarantineUp) return;
    isQuarantineUp = true;
    self.after(
      around.world.chance(`${name} quarantine`).between(200, 1_500),
      "starts a quarantine",
      () => void carrySuspects(onDeath),
    );
  };
  const carrySuspects = async (onDeath: () => void): Promise<void> => {
    const suspects = openParts(around, `${name}q`);
    self.atCrash(() => suspects.self.crash());
    suspects.self.atCrash(() => {
      self.after(2_000, "sees its quarantine dead", () => {
        isQuarantineUp = false;
        onDeath();
      });
    });
    const services = engineOf(around, suspects);
    const open = async (onLost: () => void): Promise<Database> =>
      await holdSession(around.server, suspects.self, onLost);
    await suspects.self.run(async () => {
      const quarantined = await Worker.startQuarantined(services, { openSession: open });
      await quarantined.idle;
      await quarantined.stop();
    });
    isQuarantineUp = false;
  };
  const worker = self.run(
    async () =>
      await Worker.start(engine, { concurrency: PLACES, openSession, chores: choresOf(engine), quarantine }),
  );
  const started: SimWorker = { ...parts, running: null };
  worker.then(
    (running) => (started.running = running),
    (error: unknown) => {
      around.world.tell(name, `did not start: ${String(error)}`);
      if (self.isCrashed) return;
      self.crash();
      onFailed(self);
    },
  );
  return started;
}

/** In place of graphile-worker, which goes by the server's clock and by timers of its own. */
function choresOf(engine: EngineServices) {
  const ends: (() => void)[] = [];
  return {
    poolIds: [],
    start: async (): Promise<void> => {
      ends.push(
        engine.clock.every(HOUSEKEEPING_EVERY_MS, () => void purgeOldRuns(engine).catch(() => {})),
        engine.clock.every(CLOSE_AUDIT_EVERY_MS, () => void closeAudit(engine).catch(() => {})),
      );
    },
    freeLeft: async (): Promise<void> => {},
    stop: async (): Promise<void> => {
      for (const end of ends) end();
    },
    close: (): void => {},
  };
}

function engineOf(around: Surroundings, { self, db, news, log }: Parts): EngineServices {
  const { world, stage, target } = around;
  const scratchFolder = join(around.folder, self.name, "scratch");
  mkdirSync(scratchFolder, { recursive: true });
  return {
    db,
    news,
    blobs: around.store,
    vault: trackedVault(stage.vault, world),
    audit: stage.signing.audit,
    handleMac: (parts) => stage.signing.runHandle(parts),
    gate: target.gateOf(self),
    browsers: NO_BROWSERS,
    fence: new SelfFence(self.clock),
    loginTurns: new LoginTurns(self.clock),
    paces: new Paces(db, self.clock),
    liveViews: new LiveViews({ db, log }),
    expressions: trackedExpressions(stage.expressions, world),
    loginExpressions: trackedExpressions(stage.expressions, world),
    clientSecret: async () => await Promise.reject(new Error("No client secret is simulated.")),
    log,
    clock: self.clock,
    random: world.random.fork(self.name),
    scratchFolder,
    mailer: null,
    publicUrl: () => "http://simulated.example",
    loginTimeoutMs: 120_000,
  };
}

/** What threads evaluate is under way for real. */
function trackedExpressions(evaluator: Evaluator, { work }: World): Evaluator {
  return {
    bind: (variables) => {
      const bound = evaluator.bind(variables);
      return new Proxy(bound, {
        get: (of, name) => {
          const member: unknown = Reflect.get(of, name);
          if (typeof member !== "function") return member;
          return (...given: unknown[]): unknown => {
            const result: unknown = Reflect.apply(member, of, given);
            return result instanceof Promise ? work.track("an expression", result) : result;
          };
        },
      });
    },
    close: async () => {},
  };
}

const NO_BROWSERS: EngineServices["browsers"] = {
  network: "host",
  places: async () => ({ most: 0, free: 0 }),
  watchPlaces: () => {},
  open: async () => await Promise.reject(new Error("No browser is simulated.")),
  check: async () => await Promise.reject(new Error("No browser is simulated.")),
  sweep: async () => {},
  close: async () => {},
};

/** Its ciphers are at work in threads. */
const trackedVault = (vault: EngineServices["vault"], { work }: World): EngineServices["vault"] => ({
  canOpen: vault.canOpen,
  holds: (kid) => vault.holds(kid),
  seal: async (plaintext, binding) => await work.track("a seal", vault.seal(plaintext, binding)),
  open: async (sealed, binding) => await work.track("an opening", vault.open(sealed, binding)),
});

/** A process with the api role: what a request needs between its HTTP and the database. */
export interface SimApi extends Parts {
  readonly services: Services;
}

export function startApi(around: Surroundings, name: string): SimApi {
  const parts = openParts(around, name);
  const { db, log, news } = parts;
  const { signing } = around.stage;
  const services = {
    db,
    log,
    news,
    signing,
    blobs: around.store,
    quotas: new AccountQuotas(db, { queuedRuns: 1_000, storedBytes: null }, log),
  };
  // Logins, sign-ins and pages are not simulated: what reaches for their services fails.
  return { ...parts, services: services as Partial<Services> as Services };
}
