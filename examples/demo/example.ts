import type { Backend } from "./backend.ts";
import type { Surroundings } from "./surroundings.ts";

/** An example Blueprint that the demo plays from the first click of the end user to a look into the target. */
export interface Example {
  readonly name: string;
  /** One line for the list. */
  readonly shows: string;
  /** Below `examples/`, besides the account. */
  readonly documents: readonly string[];
  /** It can't be played on a machine without a Chromium. */
  readonly needsBrowser?: boolean;
  play(stage: Stage): Promise<void>;
}

export interface Stage {
  readonly backend: Backend;
  readonly surroundings: Surroundings;
}
