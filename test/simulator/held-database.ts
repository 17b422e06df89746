import type { Database, Statement } from "#db/connection/pool.ts";
import type { SimProcess } from "./sim-process.ts";
import { labelOf, lost, subjectOf, type SimServer } from "./sim-server.ts";
import type { Work } from "./real-work.ts";

/** As the product's pools: what a statement waits for a lock. */
export const LOCK_TIMEOUT_MS = 5_000;
/** What an open transaction may wait for its next statement. */
const IDLE_MS = 10_000;

/** One connection while a transaction is on it. */
interface Connection {
  isBroken: boolean;
  /** It is at its COMMIT: what the process does makes no difference any more. */
  isEnding: boolean;
  /** The statements before: a server takes them one after the other. */
  tail: Promise<unknown>;
  arrivesAtMs: number;
  /** What its COMMIT makes true. */
  readonly commits: (() => void)[];
  readonly lockTimeoutMs: number;
  readonly broken: PromiseWithResolvers<never>;
}

interface CallOptions {
  readonly lockTimeoutMs?: number | undefined;
  readonly connection?: Connection;
}

/**
 * A process's database: the real one, and each call an event that comes to the server when it is its turn, and comes back when it is its
 * turn. Statements of several transactions take turns, so they meet each other's locks; how long one waits goes by the simulation's time.
 */
export class HeldDatabase {
  readonly #real: Database;
  readonly #server: SimServer;
  readonly #self: SimProcess;
  readonly #pool: Database["pool"];
  #open: Connection[] = [];

  constructor(server: SimServer, self: SimProcess) {
    this.#real = server.db;
    this.#server = server;
    this.#self = self;
    this.#pool = Object.create(server.db.pool) as Database["pool"];
    self.atCrash(() => this.#breakAll());
    self.onCut(() => this.#breakAll());
  }

  /** As the product's parts see it. What they keep by database or by pool is this process's alone. */
  get database(): Database {
    const [real, server] = [this.#real, this.#server];
    return {
      query: async (statement, values) => {
        const asked = asStatement(statement, values);
        return await this.#call(asked, async () => {
          const prepared = server.prepared(asked);
          const rows = await real.query<any>(prepared);
          this.#see(prepared, rows)();
          return rows;
        });
      },
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
        await this.#pipeline(statements, lockTimeoutMs ?? LOCK_TIMEOUT_MS),
      end: async () => {},
      clock: this.#self.clock,
      pool: this.#pool,
    };
  }

  #breakAll(): void {
    for (const connection of this.#open) if (!connection.isEnding) breakOff(connection);
  }

  /** A statement has been done. Gives what its COMMIT makes true, which is there for the oracles to look at then. */
  #see(statement: Statement, rows: readonly unknown[]): () => void {
    const { name, world } = this.#self;
    const commit = this.#server.leases.see(name, statement, rows);
    return () => {
      commit();
      for (const kind of this.#server.changesOf(statement, rows)) world.changes[kind]++;
    };
  }

  /** One call over the network: there, what the server does, and back. */
  async #call<T>(statement: Statement, execute: () => Promise<T>, options: CallOptions = {}): Promise<T> {
    const { world, network, name } = this.#self;
    const { connection, lockTimeoutMs = LOCK_TIMEOUT_MS } = options;
    const label = labelOf(statement);
    const call = `${name} ${subjectOf(statement)}`;
    const { promise, resolve, reject } = Promise.withResolvers<T>();
    const fate = network.fate(call);
    const backMs = network.latencyMs(call);
    const reply = (act: () => void): void => void this.#self.after(backMs, `< ${label}`, act);
    const fail = (error: unknown): void => {
      if (connection && !isStatementsOwn(error)) breakOff(connection);
      reply(() => reject(error));
    };
    const way = { afterMs: arrivalMs(this.#self, call, connection), label, onSilence: () => fail(lost()) };
    this.#server.arrive(this.#self, way, () => {
      if (fate === "request_lost") world.tell(name, `the connection broke before ${label}`);
      if (fate === "request_lost" || this.#server.isDown) return fail(lost());
      const done = this.#inTurn(
        connection,
        async () => await this.#server.execute(this.#self, statement, lockTimeoutMs, execute),
      );
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

  /**
   * Statements that leave together with their BEGIN and COMMIT. The server does one after the other, whatever becomes of the client, and those
   * of others between them.
   */
  async #pipeline(
    statements: readonly Statement[],
    lockTimeoutMs: number,
  ): Promise<readonly (readonly unknown[])[]> {
    const { world, network, name } = this.#self;
    const { promise, resolve, reject } = Promise.withResolvers<readonly (readonly unknown[])[]>();
    const label = statements.map(labelOf).join(" + ");
    const call = `${name} ${label} ${statements.map(subjectOf).join(" ")}`;
    const [thereMs, backMs, fate] = [network.latencyMs(call), network.latencyMs(call), network.fate(call)];
    let busy: Work | null = null;
    const commits: (() => void)[] = [];
    const gap = async (): Promise<void> => {
      busy?.end();
      const turn = new Promise<void>(
        (done) => void world.after(this.#server.gapMs(call), `${name} + ${label}`, done),
      );
      await Promise.race([turn, world.untilOver()]);
      if (world.isOver || this.#server.isDown) throw lost();
    };
    const work = async (tx: Database): Promise<readonly (readonly unknown[])[]> => {
      try {
        const results: (readonly unknown[])[] = [];
        for (const statement of statements) {
          await gap();
          const prepared = this.#server.prepared(statement);
          const execute = async () => await tx.query<any>(prepared);
          const rows = await this.#server.execute(this.#self, statement, lockTimeoutMs, execute);
          commits.push(this.#see(prepared, rows));
          results.push(rows);
        }
        // Others' statements come before COMMIT, too.
        await gap();
        return results;
      } finally {
        // COMMIT, or ROLLBACK.
        busy = world.work.begin("a transaction", "release");
      }
    };
    const end = (act: () => void): void => {
      busy?.end();
      this.#self.after(backMs, `< ${label}`, act);
    };
    this.#server.arrive(this.#self, { afterMs: thereMs, label, onSilence: () => reject(lost()) }, () => {
      if (fate === "request_lost" || this.#server.isDown) return end(() => reject(lost()));
      busy = world.work.begin("a transaction");
      this.#real.transaction(work).then(
        (results) => {
          for (const commit of commits) commit();
          end(() => (fate === "answer_lost" ? reject(lost()) : resolve(results)));
        },
        (error: unknown) => end(() => reject(error)),
      );
    });
    return await promise;
  }

  async #transaction<T>(
    work: (tx: Database) => Promise<T>,
    lockTimeoutMs: number,
    options: { readonly retry?: boolean | undefined; readonly settle?: boolean | undefined },
  ): Promise<T> {
    const { world, network, name } = this.#self;
    const { promise, resolve, reject } = Promise.withResolvers<T>();
    const call = `${name} transaction`;
    const [thereMs, backMs, commitMs] = [1, 2, 3].map(() => network.latencyMs(call)) as [
      number,
      number,
      number,
    ];
    const fate = network.fate(call);
    let busy: Work | null = null;
    let commits: readonly (() => void)[] = [];
    const attempt = async (tx: Database): Promise<T> => {
      busy?.end();
      const connection = this.#connect(lockTimeoutMs);
      const unwatch = watchIdle(this.#self, connection);
      try {
        const inside = this.#inside(tx, connection);
        const working = this.#self.run(async () => await work(inside));
        const result = await Promise.race([working, connection.broken.promise]);
        connection.isEnding = fate !== "request_lost";
        const way = { afterMs: commitMs, label: "commit", onSilence: () => reject(lost()) };
        const arrives = new Promise<void>((done) => this.#server.arrive(this.#self, way, done));
        await Promise.race([arrives, world.untilOver()]);
        if (fate === "request_lost") world.tell(name, "the connection broke before COMMIT");
        if (fate === "request_lost" || connection.isBroken || world.isOver || this.#server.isDown)
          throw lost();
        commits = connection.commits;
        return result;
      } finally {
        unwatch();
        await this.#disconnect(connection);
        // COMMIT, or ROLLBACK.
        busy = world.work.begin("a transaction", "release");
      }
    };
    const end = (act: () => void): void => {
      busy?.end();
      this.#self.after(backMs, "< end of transaction", act);
    };
    const way = { afterMs: thereMs, label: "begin", onSilence: () => reject(lost()) };
    this.#server.arrive(this.#self, way, () => {
      if (this.#self.isCrashed) return;
      if (this.#server.isDown) return end(() => reject(lost()));
      busy = world.work.begin("a transaction");
      this.#server.showTime();
      const done = this.#real.transaction(attempt, { retry: options.retry });
      done.then(
        (value) => {
          for (const commit of commits) commit();
          // With `settle` the product's pool would ask the server on another connection what became of it.
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
      commits: [],
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
      const asked = asStatement(statement, values);
      const prepared = this.#server.prepared(asked);
      const execute = async () => {
        const rows = await tx.query<any>(prepared);
        connection.commits.push(this.#see(prepared, rows));
        return rows;
      };
      return await this.#call(asked, execute, {
        lockTimeoutMs: connection.lockTimeoutMs,
        connection,
      });
    };
    let savepoints = 0;
    const inside: Database = {
      ...tx,
      clock: this.#self.clock,
      pool: this.#pool,
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

const asStatement = (statement: string | Statement, values?: readonly unknown[]): Statement =>
  typeof statement === "string"
    ? { text: statement, values }
    : { ...statement, values: statement.values ?? values };

/** What leaves a process later on the same connection arrives later. */
function arrivalMs({ world, network }: SimProcess, call: string, connection: Connection | undefined): number {
  const ms = network.latencyMs(call);
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
