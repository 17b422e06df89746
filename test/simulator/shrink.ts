import { simulate, type Simulated } from "./simulate.ts";
import type { Stage } from "./stage.ts";

/** The same failure with as few of the seed's faults as this finds: each is left out, and stays out when the oracle speaks all the same. */
export async function shrink(stage: Stage, failed: Simulated): Promise<Simulated> {
  let smallest = failed;
  for (const fault of failed.faults) {
    const faults = smallest.faults.filter((each) => each !== fault);
    const tried = await simulate(stage, { seed: failed.seed, faults });
    if (tried.violation?.oracle === failed.violation?.oracle) smallest = tried;
  }
  return smallest;
}
