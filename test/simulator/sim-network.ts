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
/** What keeps nothing from happening in time. */
const isCalm = ({ lossRate, latencyMs }: Weather): boolean => lossRate === 0 && latencyMs <= 100;

/** Between all processes and the database. */
export class SimNetwork implements Network {
  #weather = CALM;
  #calmSinceMs = 0;
  #slowestMs = 0;
  readonly #world: World;

  constructor(world: World) {
    this.#world = world;
  }

  set weather(weather: Weather) {
    if (!isCalm(this.#weather)) this.#calmSinceMs = this.#world.nowMs;
    this.#weather = weather;
  }

  /** The longest way that a call or an answer has had. */
  get slowestMs(): number {
    return this.#slowestMs;
  }

  /** When calls were last lost, or late. */
  roughUntilMs(): number {
    return isCalm(this.#weather) ? this.#calmSinceMs : this.#world.nowMs;
  }

  latencyMs(call: string): number {
    const { latencyMs } = this.#weather;
    const random = this.#world.chance(call);
    const ms = random.between(0.05, random.isHit(0.02) ? 10 * latencyMs : latencyMs);
    this.#slowestMs = Math.max(this.#slowestMs, ms);
    return ms;
  }

  fate(call: string): ReturnType<Network["fate"]> {
    const random = this.#world.chance(call);
    if (!random.isHit(this.#weather.lossRate)) return "arrives";
    return random.isHit(0.5) ? "request_lost" : "answer_lost";
  }
}
