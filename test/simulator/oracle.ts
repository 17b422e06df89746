import type { Database } from "#db/connection/pool.ts";
import type { Customers } from "./customers.ts";
import type { Fleet } from "./fleet.ts";
import type { Surroundings } from "./processes.ts";
import type { ScriptedTarget } from "./target.ts";
import type { World } from "./world.ts";

/** What an oracle looks at. `db` is the real database, beside all simulated processes. */
export interface Seen {
  readonly world: World;
  readonly around: Surroundings;
  readonly db: Database;
  readonly target: ScriptedTarget;
  readonly customers: Customers;
  readonly fleet: Fleet;
}

/** What does not hold. */
export interface Broken {
  readonly oracle: string;
  readonly what: string;
}

/** Says what does not hold; nothing: all is well. To add one, see docs/simulator.md. */
export interface Oracle {
  readonly name: string;
  /**
   * `step`: after each event, so it looks at what is in memory. `change`: after each event in which runs were written to.
   * `moment`: now and then, and at the end. `end`: at the end.
   */
  readonly when: "step" | "change" | "moment" | "end";
  look(seen: Seen): Promise<readonly string[]> | readonly string[];
}
