import { readClock } from "#db/connection/clock.ts";
import type { Needs } from "#actions/services.ts";

/** Whether the service can work: throws when the database does not answer. */
export async function readHealth(services: Needs<"db">): Promise<void> {
  await readClock(services.db);
}
