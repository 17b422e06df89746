import type { Network } from "./sim-process.ts";
import type { World } from "./world.ts";

/** How the way to the database is. */
export interface Weather {
  /** Of calls: the connection breaks before the server has done it, or after. */
  readonly lossRate: number;
  /** One way, at most; now and then ten times that. */
  readonly latencyMs: number;
}

export const CALM: Weather = { lossRate: 0, latencyMs: 2 };

/** Between all processes and the database. */
export class SimNetwork implements Network {
  #weather = CALM;
  #calmSinceMs = 0;
  readonly #world: World;
  readonly #random;

  constructor(world: World) {
    this.#world = world;
    this.#random = world.random.fork("network");
  }

  set weather(weather: Weather) {
    this.#weather = weather;
    this.#calmSinceMs = this.#world.nowMs;
  }

  /** When it was last anything but calm. */
  roughUntilMs(): number {
    return this.#weather === CALM ? this.#calmSinceMs : this.#world.nowMs;
  }

  latencyMs(): number {
    const { latencyMs } = this.#weather;
    return this.#random.between(0.05, this.#random.isHit(0.02) ? 10 * latencyMs : latencyMs);
  }

  fate(): ReturnType<Network["fate"]> {
    if (!this.#random.isHit(this.#weather.lossRate)) return "arrives";
    return this.#random.isHit(0.5) ? "request_lost" : "answer_lost";
  }
}
