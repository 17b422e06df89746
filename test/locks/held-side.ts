import type { Database, Statement } from "#db/connection/pool.ts";

/** A statement that waits to be let go. */
interface Held {
  readonly label: string;
  letGo(): void;
}

/** How a side's work ended. */
export type Ended =
  | { readonly kind: "done"; readonly value: unknown }
  | { readonly kind: "failed"; readonly error: unknown };

/** The limit of every wait for a lock, as the product's pool has it. */
const LOCK_TIMEOUT_MAX_MS = 5_000;

/**
 * One of two processes with a database of its own. Each of its statements, and each COMMIT, waits until the explorer lets it go; the
 * statements themselves are the product's, on a real connection.
 */
export class HeldSide {
  readonly name: string;
  /** Statements of which the server said that they met a deadlock, also those that were tried again. */
  readonly deadlocks: string[] = [];
  /** Transactions in which a wait for a lock could last longer than the product's limit. */
  readonly unlimited: string[] = [];
  readonly #real: Database;
  readonly #onChange: () => void;
  readonly #held: Held[] = [];
  #isFree = false;
  #running: string | null = null;
  #ended: Ended | null = null;

  constructor(name: string, real: Database, onChange: () => void) {
    this.name = name;
    this.#real = real;
    this.#onChange = onChange;
  }

  get ended(): Ended | null {
    return this.#ended;
  }

  /** The statement that is next; null: none is held. */
  get next(): string | null {
    return this.#running === null ? (this.#held[0]?.label ?? null) : null;
  }

  /** It has come to a statement that is held, or to its end. */
  get isStill(): boolean {
    return this.#ended !== null || this.next !== null;
  }

  begin(work: (db: Database) => Promise<unknown>): void {
    const end = (ended: Ended): void => {
      this.#ended = ended;
      this.#onChange();
    };
    work(this.database).then(
      (value) => end({ kind: "done", value }),
      (error: unknown) => end({ kind: "failed", error }),
    );
  }

  letGo(): void {
    this.#held.shift()?.letGo();
  }

  /** From now on nothing is held: what it waits for are locks alone. */
  setFree(): void {
    this.#isFree = true;
    while (this.#held.length > 0) this.letGo();
  }

  /** As the product's parts see it. */
  get database(): Database {
    const real = this.#real;
    const transaction: Database["transaction"] = async (work, options) =>
      await real.transaction(async (tx) => await this.#inside(tx, work), options);
    return {
      ...real,
      query: async (statement, values) =>
        await this.#step(labelOf(statement), async () => await real.query(statement, values)),
      transaction,
      transact: async (statement, { lockTimeoutMs }, beforeCommit) =>
        await transaction(
          async (tx) => {
            const rows = await tx.query<any>(statement);
            await beforeCommit(rows);
            return rows;
          },
          { settle: true, lockTimeoutMs },
        ),
      // The server takes them one after the other, and other sessions' statements come between them.
      transactAll: async (statements, options = {}) =>
        await transaction(
          async (tx) => await Promise.all(statements.map(async (each) => await tx.query(each))),
          options,
        ),
      end: async () => {},
    };
  }

  async #inside<T>(tx: Database, work: (tx: Database) => Promise<T>): Promise<T> {
    let isLimitKnown = false;
    const query: Database["query"] = async (statement, values) =>
      await this.#step(labelOf(statement), async () => {
        if (!isLimitKnown) await this.#lookAtLimit(tx, labelOf(statement));
        isLimitKnown = true;
        return await tx.query(statement, values);
      });
    let savepoints = 0;
    const inside: Database = {
      ...tx,
      query,
      transaction: async (part) => {
        const name = `part_${++savepoints}`;
        await tx.query(`savepoint ${name}`);
        try {
          const result = await part(inside);
          await tx.query(`release savepoint ${name}`);
          return result;
        } catch (error) {
          await tx.query(`rollback to savepoint ${name}`);
          throw error;
        }
      },
    };
    const result = await work(inside);
    await this.#step("commit", async () => {});
    return result;
  }

  async #lookAtLimit(tx: Database, label: string): Promise<void> {
    const [limit] = await tx.query<{ ms: number }>(
      "select setting::int as ms from pg_settings where name = 'lock_timeout'",
    );
    const ms = limit?.ms ?? 0;
    if (ms === 0 || ms > LOCK_TIMEOUT_MAX_MS) this.unlimited.push(`${label}: lock_timeout is ${ms} ms`);
  }

  async #step<T>(label: string, execute: () => Promise<T>): Promise<T> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const letGo = (): void => {
      this.#running = label;
      resolve();
    };
    // Nothing of another session decides what it gives, so when it runs makes no difference.
    if (TIME_ALONE.test(label)) return await execute();
    if (this.#isFree) letGo();
    else this.#held.push({ label, letGo });
    this.#onChange();
    await promise;
    try {
      return await execute();
    } catch (error) {
      if ((error as { code?: unknown }).code === "40P01") this.deadlocks.push(label);
      throw error;
    } finally {
      this.#running = null;
      this.#onChange();
    }
  }
}

const TIME_ALONE = /^(read_clock\w*|select [^;]*app_now\(\)(?![^;]* from ).*)$/;

/** A statement's own words, without values. */
function labelOf(statement: string | Statement): string {
  if (typeof statement !== "string" && statement.name !== undefined) return statement.name;
  const text = typeof statement === "string" ? statement : statement.text;
  return text.replace(/\s+/g, " ").trim().slice(0, 70);
}
