import type { Database, Statement } from "#db/connection/pool.ts";
import { LOCK_TIMEOUT_MS } from "./held-database.ts";
import type { SimProcess } from "./sim-process.ts";
import { labelOf, lost, type SimServer } from "./sim-server.ts";

/** The connection that holds a worker's advisory lock. It ends with its process, after as long as the network takes to tell. */
export async function holdSession(
  server: SimServer,
  self: SimProcess,
  onLost: () => void,
): Promise<Database> {
  const { world, network, name } = self;
  if (server.isDown) {
    await self.clock.sleep(network.latencyMs(name));
    throw lost();
  }
  const client = await world.work.track("a connection", server.db.pool.connect());
  let isOver = false;
  /** What it does just now may wait for a lock. */
  let tail: Promise<unknown> = Promise.resolve();
  let ended: Promise<void> | null = null;
  // The real connection is another one's next: what ends with a session is its locks.
  const unlock = async (): Promise<void> => {
    await tail;
    await world.work.track("an unlock", client.query("select pg_advisory_unlock_all()"), "release");
    client.release();
  };
  const end = async (): Promise<void> => {
    isOver = true;
    await (ended ??= unlock());
  };
  self.atCrash(() => void world.after(network.latencyMs(name), `${name} liveness ends`, () => void end()));
  server.keepSession(end);
  self.onCut(() => {
    if (isOver) return;
    void end();
    self.after(network.latencyMs(name), "liveness lost", onLost);
  });
  const query = async (given: string | Statement, values?: readonly unknown[]): Promise<never> => {
    const statement: Statement = typeof given === "string" ? { text: given, values } : given;
    const { promise, resolve, reject } = Promise.withResolvers<unknown>();
    const label = labelOf(statement);
    const [thereMs, backMs] = [network.latencyMs(`${name} ${label}`), network.latencyMs(`${name} ${label}`)];
    const fail = (error: unknown): void => void self.after(backMs, `< ${label}`, () => reject(error));
    const ask = async (): Promise<unknown> => {
      if (isOver || server.isDown) throw lost();
      const { name: plan, text, values: all } = server.prepared(statement);
      const config = { text, ...(plan === undefined ? {} : { name: plan }), values: [...(all ?? [])] };
      const execute = async () => await client.query(config);
      return (await server.execute(self, statement, LOCK_TIMEOUT_MS, execute)).rows;
    };
    server.arrive(self, { afterMs: thereMs, label, onSilence: () => fail(lost()) }, () => {
      const asked = ask();
      tail = asked.catch(() => undefined);
      asked.then((rows) => self.after(backMs, `< ${label}`, () => resolve(rows)), fail);
    });
    return (await promise) as never;
  };
  return { ...server.db, query, end, clock: self.clock };
}
