import type { Database, Statement } from "#db/connection/pool.ts";
import { labelOf, LOCK_TIMEOUT_MS } from "./held-database.ts";
import type { SimProcess } from "./sim-process.ts";
import { lost, type SimServer } from "./sim-server.ts";

/** The connection that holds a worker's advisory lock. It ends with its process, after as long as the network takes to tell. */
export async function holdSession(
  server: SimServer,
  self: SimProcess,
  onLost: () => void,
): Promise<Database> {
  const { world, network, name } = self;
  if (server.isDown) {
    await self.clock.sleep(network.latencyMs());
    throw lost();
  }
  const client = await world.work.track(server.db.pool.connect());
  let isOver = false;
  /** What it does just now may wait for a lock. */
  let tail: Promise<unknown> = Promise.resolve();
  let ended: Promise<void> | null = null;
  // The real connection is another one's next: what ends with a session is its locks.
  const unlock = async (): Promise<void> => {
    await tail;
    await world.work.track(client.query("select pg_advisory_unlock_all()"));
    client.release();
  };
  const end = async (): Promise<void> => {
    isOver = true;
    await (ended ??= unlock());
  };
  self.atCrash(() => void world.after(network.latencyMs(), `${name} liveness ends`, () => void end()));
  server.keepSession(end);
  self.onCut(() => {
    if (isOver) return;
    void end();
    self.after(network.latencyMs(), "liveness lost", onLost);
  });
  const query = async (statement: string | Statement, values?: readonly unknown[]): Promise<never> => {
    const { promise, resolve, reject } = Promise.withResolvers<unknown>();
    const [thereMs, backMs] = [network.latencyMs(), network.latencyMs()];
    const label = labelOf(statement);
    const fail = (error: unknown): void => void self.after(backMs, `< ${label}`, () => reject(error));
    const ask = async (): Promise<unknown> => {
      if (isOver || server.isDown) throw lost();
      const { name: plan, text, values: given } = server.prepared(statement, values);
      const config = { text, ...(plan === undefined ? {} : { name: plan }), values: [...(given ?? [])] };
      const execute = async () => await client.query(config);
      return (await server.execute(self, label, LOCK_TIMEOUT_MS, execute)).rows;
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
