import type { Database, Statement } from "#db/connection/pool.ts";
import { LeaseWatch } from "./lease-watch.ts";
import { SERVER_START_SQL, type StageDatabase } from "./stage-database.ts";
import type { SimProcess } from "./sim-process.ts";
import type { Work } from "./real-work.ts";
import type { Change, World } from "./world.ts";

/** After this time without an answer a client gives its connection up: as the product's pools. */
const SILENCE_MS = 7_500;

/** A statement that gives up locks before its transaction ends. */
const GIVES_UP_LOCKS = /^\s*rollback\b|pg_advisory_unlock/i;

/** As the driver says it. */
export const lost = (): Error =>
  Object.assign(new Error("Connection terminated unexpectedly"), { code: "ECONNRESET" });

/** What comes to the server: after how long, and what its client does when it hears nothing for too long. */
export interface Way {
  readonly afterMs: number;
  readonly label: string;
  readonly onSilence: () => void;
}

/** The one PostgreSQL of all simulated processes, by the simulation's time. */
export class SimServer {
  readonly #database: StageDatabase;
  readonly #world: World;
  /** How far its clock is off. */
  #stepMs = 0;
  #stillUntilMs = 0;
  #isDown = false;
  #troubledAtMs = 0;
  readonly #sessions: (() => Promise<void>)[] = [];
  #shownMs = -1;
  /** Statements under way, by what they are and are about. */
  readonly #ahead = new Map<string, PromiseWithResolvers<void>>();
  readonly leases = new LeaseWatch();

  constructor(database: StageDatabase, world: World) {
    this.#database = database;
    this.#world = world;
  }

  get db(): Database {
    return this.#database.db;
  }

  /** Makes `app_now()` the simulation's time. */
  showTime(): void {
    const ms = Math.max(0, Math.floor(this.#world.nowMs + this.#stepMs));
    if (ms === this.#shownMs) return;
    this.#shownMs = ms;
    this.#database.showTime(ms);
  }

  stepClock(byMs: number): void {
    this.#stepMs += byMs;
    this.#troubledAtMs = this.#world.nowMs;
  }

  /** It does nothing for so long: what comes meanwhile is done afterwards, although its client may be gone. */
  standStill(forMs: number): void {
    this.#stillUntilMs = Math.max(this.#stillUntilMs, this.#world.nowMs + forMs);
  }

  /** While it is down, nobody reaches it. */
  get isDown(): boolean {
    return this.#isDown;
  }

  set isDown(isDown: boolean) {
    this.#isDown = isDown;
    this.#troubledAtMs = this.#world.nowMs;
  }

  /** Until when it stood still, was down, or its clock stepped. */
  troubledUntilMs(): number {
    return this.#isDown ? this.#world.nowMs : Math.max(this.#troubledAtMs, this.#stillUntilMs);
  }

  /** It was started again, or another one is in its place: its locks are gone, and it says so. */
  async replace(): Promise<void> {
    await this.#database.replaceServer();
  }

  arrive(self: SimProcess, { afterMs, label, onSilence }: Way, act: () => void): void {
    const world = this.#world;
    const come = (): void => {
      const stillMs = Math.max(0, this.#stillUntilMs - world.nowMs);
      if (stillMs === 0) return act();
      if (stillMs > SILENCE_MS) self.after(SILENCE_MS, `hears nothing of ${label}`, onSilence);
      world.after(stillMs, `${self.name} > ${label}`, come);
    };
    world.after(afterMs, `${self.name} > ${label}`, come);
  }

  /** What the statement is to the real server: planned once a connection. */
  prepared(statement: Statement): Statement {
    const { changes: _, ...plan } = planOf(statement);
    return { ...statement, ...plan };
  }

  /** What a statement with these rows as its answer has changed. */
  changesOf(statement: Statement, rows: readonly unknown[]): readonly Change[] {
    const { changes } = planOf(statement);
    // An admission answers with one row without a run when it has admitted none.
    const isOf = (kind: Change): boolean =>
      kind !== "admissions" ||
      (rows as readonly { readonly id: string | null }[]).some(({ id }) => id !== null);
    return changes.filter(isOf);
  }

  /** Between two statements that left together, and before their COMMIT: now and then the server does others' work first. */
  gapMs(call: string): number {
    const random = this.#world.chance(`${call} gap`);
    return random.isHit(0.1) ? random.between(0.3, 20) : 0.3;
  }

  /** `end` may be called more than once. */
  keepSession(end: () => Promise<void>): void {
    this.#sessions.push(end);
  }

  async endSessions(): Promise<void> {
    for (const end of this.#sessions) await end();
  }

  /** A statement that may wait for another transaction's lock, for so long by the simulation's time. */
  async execute<T>(
    self: SimProcess,
    statement: Statement,
    lockTimeoutMs: number,
    act: () => Promise<T>,
  ): Promise<T> {
    const world = this.#world;
    const label = labelOf(statement);
    const rows = subjectOf(statement);
    // Of two that wait for one row, PostgreSQL lets either go first once that row was changed: here it is the first that came.
    for (let ahead = this.#ahead.get(rows); ahead; ahead = this.#ahead.get(rows)) await ahead.promise;
    const ended = Promise.withResolvers<void>();
    this.#ahead.set(rows, ended);
    const work = world.work.begin(label, GIVES_UP_LOCKS.test(statement.text) ? "release" : "statement");
    const callOff = world.after(lockTimeoutMs, `${self.name} lock time-out of ${label}`, () => {
      if (work.pid === null) return;
      work.isCancelled = true;
      void world.work.track("a cancel", this.#cancel(work.pid));
    });
    try {
      this.showTime();
      return await act();
    } catch (error) {
      throw asLockTimeout(error, work);
    } finally {
      callOff();
      work.end();
      this.#ahead.delete(rows);
      ended.resolve();
    }
  }

  async #cancel(pid: number): Promise<void> {
    await this.#database.admin.query("select pg_cancel_backend($1)", [pid]);
  }
}

const labels = new Map<string, string>();

/** A statement's own words, without values. */
export function labelOf({ name, text }: Statement): string {
  if (name !== undefined) return name;
  let label = labels.get(text);
  if (label === undefined) labels.set(text, (label = text.replace(/\s+/g, " ").trim().slice(0, 48)));
  return label;
}

/** What it is, and what it is about: a run, an account. */
export const subjectOf = (statement: Statement): string =>
  `${labelOf(statement)} ${String(statement.values?.[0])}`;

interface Plan {
  readonly name?: string;
  readonly text: string;
  readonly changes: readonly Change[];
}

const plans = new Map<string, Plan>();

const CHANGES: readonly (readonly [Change, RegExp])[] = [
  ["admissions", /\bset admitted_at = app_now\(\)/i],
  [
    "effects",
    /insert into audit_entry|update review set|set status = 'cancelled'|set purged_at = |decided_by = \$/i,
  ],
];

/** Of the text of a statement. Several in one text have no plan of their own. */
function planOf({ name, text }: Statement): Plan {
  const known = plans.get(text);
  if (known !== undefined) return known;
  const isOne = /^\s*(select|with|insert|update|delete)\b/i.test(text) && !text.includes(";");
  const plan = {
    ...(isOne ? { name: name ?? `simulated_${plans.size}` } : {}),
    changes: CHANGES.flatMap(([change, pattern]) => (pattern.test(text) ? [change] : [])),
    text: text.replaceAll("pg_postmaster_start_time()", SERVER_START_SQL),
  };
  plans.set(text, plan);
  return plan;
}

/** PostgreSQL's own limit goes by real time, so the simulation cancels the statement, and it fails as that limit fails it. */
function asLockTimeout(error: unknown, work: Work): unknown {
  if (work.pid === null || !(error instanceof Error) || (error as { code?: string }).code !== "57014")
    return error;
  return Object.assign(error, { code: "55P03", message: "canceling statement due to lock timeout" });
}
