import type { Database } from "#db/connection/pool.ts";
import type { Customers } from "./customers.ts";
import type { Fleet } from "./fleet.ts";
import type { Surroundings } from "./processes.ts";
import type { ScriptedTarget } from "./target.ts";
import type { Change, World } from "./world.ts";

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

export type When = "step" | Change | "moment" | "end";

/** Says what does not hold; nothing: all is well. To add one, see docs/simulator.md. */
export interface Oracle {
  readonly name: string;
  /**
   * `step`: after each event, so it looks at what is in memory. `admissions`, `effects`: after each event in which such a change was
   * committed. `moment`: now and then, and at the end. `end`: at the end.
   */
  readonly when: When;
  look(seen: Seen): Promise<readonly string[]> | readonly string[];
}
