import { openSession, type Database, type DatabaseSource, type Statement } from "#db/connection/pool.ts";
import type { SimProcess } from "./sim-process.ts";
import type { Work } from "./real-work.ts";

/** As the product's pools: what a statement waits for a lock. */
const LOCK_TIMEOUT_MS = 5_000;
/** What an open transaction may wait for its next statement. */
const IDLE_MS = 10_000;

/** What the simulation does with the server, beside the processes. */
export interface Server {
  readonly source: DatabaseSource;
  /** Makes `app_now()` the simulation's time. */
  showTime(): Promise<void>;
  cancel(pid: number): Promise<void>;
}

/** One connection while a transaction is on it. */
interface Connection {
  isBroken: boolean;
  /** It is at its COMMIT: what the process does makes no difference any more. */
  isEnding: boolean;
  /** The statements before: a server takes them one after the other. */
  tail: Promise<unknown>;
  arrivesAtMs: number;
  readonly lockTimeoutMs: number;
  readonly broken: PromiseWithResolvers<never>;
}

interface CallOptions {
  readonly lockTimeoutMs?: number | undefined;
  readonly connection?: Connection;
}

/** As the driver says it. */
const lost = (): Error =>
  Object.assign(new Error("Connection terminated unexpectedly"), { code: "ECONNRESET" });

/** A statement's own words, without values. */
function labelOf(statement: string | Statement): string {
  if (typeof statement !== "string" && statement.name !== undefined) return statement.name;
  const text = typeof statement === "string" ? statement : statement.text;
  return text.replace(/\s+/g, " ").trim().slice(0, 48);
}

/**
 * A process's database: the real one, and each call an event that comes to the server when it is its turn, and comes back when it is its
 * turn. Statements of several transactions take turns, so they meet each other's locks; how long one waits goes by the simulation's time.
 */
export class HeldDatabase {
  readonly #real: Database;
  readonly #server: Server;
  readonly #self: SimProcess;
  #open: Connection[] = [];

  constructor(real: Database, server: Server, self: SimProcess) {
    this.#real = real;
    this.#server = server;
    this.#self = self;
    self.atCrash(() => this.#breakAll());
    self.onCut(() => this.#breakAll());
  }

  /** As the product's parts see it. */
  get database(): Database {
    const real = this.#real;
    return {
      query: async (statement, values) =>
        await this.#call(labelOf(statement), async () => await real.query(statement, values)),
      transaction: async (work, { lockTimeoutMs = LOCK_TIMEOUT_MS, ...options } = {}) =>
        await this.#transaction(work, lockTimeoutMs, options),
      transact: async (statement, { lockTimeoutMs }, beforeCommit) =>
        await this.#transaction(
          async (tx) => {
            const rows = await tx.query<any>(statement);
            await beforeCommit(rows);
            return rows;
          },
          lockTimeoutMs ?? LOCK_TIMEOUT_MS,
          { settle: true },
        ),
      transactAll: async (statements, { lockTimeoutMs } = {}) =>
        await this.#call(
          statements.map(labelOf).join(" + "),
          async () => await real.transactAll(statements),
          { lockTimeoutMs },
        ),
      end: async () => {},
      clock: this.#self.clock,
      pool: real.pool,
    };
  }

  #breakAll(): void {
    for (const connection of this.#open) if (!connection.isEnding) breakOff(connection);
  }

  /** One call over the network: there, what the server does, and back. */
  async #call<T>(label: string, execute: () => Promise<T>, options: CallOptions = {}): Promise<T> {
    const { world, network, name } = this.#self;
    const { connection, lockTimeoutMs = LOCK_TIMEOUT_MS } = options;
    const { promise, resolve, reject } = Promise.withResolvers<T>();
    const fate = network.fate();
    const backMs = network.latencyMs();
    const reply = (act: () => void): void => void this.#self.after(backMs, `< ${label}`, act);
    const fail = (error: unknown): void => {
      if (connection && !isStatementsOwn(error)) breakOff(connection);
      reply(() => reject(error));
    };
    world.after(arrivalMs(this.#self, connection), `${name} > ${label}`, () => {
      if (fate === "request_lost") world.tell(name, `the connection broke before ${label}`);
      if (fate === "request_lost") return fail(lost());
      const done = this.#inTurn(connection, async () => await this.#execute(label, lockTimeoutMs, execute));
      done.then((value) => {
        if (fate !== "answer_lost") return reply(() => resolve(value));
        world.tell(name, `the connection broke after ${label}`);
        fail(lost());
      }, fail);
    });
    return await promise;
  }

  /** After the statements before it on its connection. */
  async #inTurn<T>(connection: Connection | undefined, execute: () => Promise<T>): Promise<T> {
    if (connection === undefined) return await execute();
    const done = connection.tail.then(async () => {
      if (connection.isBroken) throw lost();
      return await execute();
    });
    connection.tail = done.catch(() => undefined);
    return await done;
  }

  async #execute<T>(label: string, lockTimeoutMs: number, execute: () => Promise<T>): Promise<T> {
    const { world, name } = this.#self;
    const work = world.work.begin(true);
    const callOff = world.after(lockTimeoutMs, `${name} lock time-out of ${label}`, () => {
      if (work.pid !== null) void world.work.track(this.#server.cancel(work.pid));
    });
    try {
      await this.#server.showTime();
      return await execute();
    } catch (error) {
      throw asLockTimeout(error, work);
    } finally {
      callOff();
      work.end();
    }
  }

  async #transaction<T>(
    work: (tx: Database) => Promise<T>,
    lockTimeoutMs: number,
    options: { readonly retry?: boolean | undefined; readonly settle?: boolean | undefined },
  ): Promise<T> {
    const { world, network, name } = this.#self;
    const { promise, resolve, reject } = Promise.withResolvers<T>();
    const [thereMs, backMs, commitMs] = [network.latencyMs(), network.latencyMs(), network.latencyMs()];
    const fate = network.fate();
    let busy: Work | null = null;
    const attempt = async (tx: Database): Promise<T> => {
      busy?.end();
      const connection = this.#connect(lockTimeoutMs);
      const unwatch = watchIdle(this.#self, connection);
      try {
        const inside = this.#inside(tx, connection);
        const working = this.#self.run(async () => await work(inside));
        const result = await Promise.race([working, connection.broken.promise]);
        connection.isEnding = fate !== "request_lost";
        const arrives = new Promise<void>((done) => void world.after(commitMs, `${name} > commit`, done));
        await Promise.race([arrives, world.untilOver()]);
        if (fate === "request_lost") world.tell(name, "the connection broke before COMMIT");
        if (fate === "request_lost" || connection.isBroken || world.isOver) throw lost();
        return result;
      } finally {
        unwatch();
        await this.#disconnect(connection);
        // COMMIT, or ROLLBACK.
        busy = world.work.begin();
      }
    };
    const end = (act: () => void): void => {
      busy?.end();
      this.#self.after(backMs, "< end of transaction", act);
    };
    world.after(thereMs, `${name} > begin`, () => {
      if (this.#self.isCrashed) return;
      busy = world.work.begin();
      const done = this.#server.showTime().then(async () => await this.#real.transaction(attempt, options));
      done.then(
        (value) => {
          // With `settle` the pool asks the server on another connection what became of it.
          if (fate !== "answer_lost" || options.settle === true) return end(() => resolve(value));
          world.tell(name, "the connection broke after COMMIT");
          end(() => reject(lost()));
        },
        (error: unknown) => end(() => reject(error)),
      );
    });
    return await promise;
  }

  #connect(lockTimeoutMs: number): Connection {
    const broken = Promise.withResolvers<never>();
    broken.promise.catch(() => {});
    const connection: Connection = {
      isBroken: false,
      isEnding: false,
      tail: Promise.resolve(),
      arrivesAtMs: this.#self.world.nowMs,
      lockTimeoutMs,
      broken,
    };
    this.#open.push(connection);
    return connection;
  }

  async #disconnect(connection: Connection): Promise<void> {
    connection.isEnding = true;
    this.#open = this.#open.filter((each) => each !== connection);
    await connection.tail;
    connection.isBroken = true;
  }

  /** What a transaction's work sees. */
  #inside(tx: Database, connection: Connection): Database {
    const query: Database["query"] = async (statement, values) => {
      if (connection.isBroken) throw lost();
      return await this.#call(labelOf(statement), async () => await tx.query(statement, values), {
        lockTimeoutMs: connection.lockTimeoutMs,
        connection,
      });
    };
    let savepoints = 0;
    const inside: Database = {
      ...tx,
      clock: this.#self.clock,
      query,
      transaction: async (work) => {
        const name = `savepoint_${++savepoints}`;
        await query(`savepoint ${name}`);
        try {
          const result = await work(inside);
          await query(`release savepoint ${name}`);
          return result;
        } catch (error) {
          if (!connection.isBroken) await query(`rollback to savepoint ${name}`);
          throw error;
        }
      },
    };
    return inside;
  }
}

/** What leaves a process later on the same connection arrives later. */
function arrivalMs({ world, network }: SimProcess, connection: Connection | undefined): number {
  const ms = network.latencyMs();
  if (connection === undefined) return ms;
  connection.arrivesAtMs = Math.max(world.nowMs + ms, connection.arrivesAtMs + 0.001);
  return connection.arrivesAtMs - world.nowMs;
}

function breakOff(connection: Connection): void {
  if (connection.isBroken) return;
  connection.isBroken = true;
  connection.broken.reject(lost());
}

/** The server ends a transaction whose process says nothing for too long. Gives the way to end the watch. */
function watchIdle({ world, name }: SimProcess, connection: Connection): () => void {
  let callOff = (): void => {};
  const look = (): void => {
    callOff = world.after(IDLE_MS / 4, `${name} idle in transaction?`, () => {
      if (world.nowMs - connection.arrivesAtMs < IDLE_MS || connection.isEnding) return look();
      world.tell(name, "the server ends a transaction that was idle for 10 s");
      breakOff(connection);
    });
  };
  look();
  return () => callOff();
}

const isStatementsOwn = (error: unknown): boolean =>
  error instanceof Error &&
  "severity" in error &&
  !/^(08|57P|XX)/.test((error as { code?: string }).code ?? "XX");

/** PostgreSQL's own limit goes by real time, so the simulation cancels the statement, and it fails as that limit fails it. */
function asLockTimeout(error: unknown, work: Work): unknown {
  if (work.pid === null || !(error instanceof Error) || (error as { code?: string }).code !== "57014")
    return error;
  return Object.assign(error, { code: "55P03", message: "canceling statement due to lock timeout" });
}

/** The connection that holds a worker's advisory lock. It ends with its process, after as long as the network takes to tell. */
export async function holdSession(server: Server, self: SimProcess, onLost: () => void): Promise<Database> {
  const { world, network, name } = self;
  const real = await world.work.track(
    openSession(server.source, { applicationName: "simulated liveness", onLost: () => {} }),
  );
  let isOver = false;
  const end = async (): Promise<void> => {
    if (isOver) return;
    isOver = true;
    await world.work.track(real.end());
  };
  self.atCrash(() => void world.after(network.latencyMs(), `${name} liveness ends`, () => void end()));
  self.onCut(() => {
    if (isOver) return;
    void end();
    self.after(network.latencyMs(), "liveness lost", onLost);
  });
  const query = async (statement: string | Statement, values?: readonly unknown[]): Promise<never> => {
    const { promise, resolve, reject } = Promise.withResolvers<unknown>();
    const [thereMs, backMs] = [network.latencyMs(), network.latencyMs()];
    const label = labelOf(statement);
    const ask = async (): Promise<unknown> => {
      if (isOver) throw lost();
      await server.showTime();
      return await real.query(statement, values);
    };
    world.after(thereMs, `${name} > ${label}`, () => {
      world.work.track(ask()).then(
        (rows) => self.after(backMs, `< ${label}`, () => resolve(rows)),
        (error: unknown) => self.after(backMs, `< ${label}`, () => reject(error)),
      );
    });
    return (await promise) as never;
  };
  return { ...real, query, end, clock: self.clock };
}
