import type { ChangeListener, RunChanges } from "#db/runs/run-notifier.ts";
import type { SimProcess } from "./sim-process.ts";
import type { World } from "./world.ts";

interface Member {
  readonly self: SimProcess;
  readonly listeners: Set<ChangeListener>;
}

type Kind = "changed" | "stop" | "waiting" | "left";

/** What processes tell each other, over a network that may lose any of it: hints, without which everything must go on. */
export class NewsNetwork {
  readonly #members: Member[] = [];
  readonly #world: World;
  #lost = 0;
  #calmSinceMs = 0;

  constructor(world: World) {
    this.#world = world;
  }

  /** The share of messages between processes that get lost. */
  set lost(lost: number) {
    if (this.#lost > 0) this.#calmSinceMs = this.#world.nowMs;
    this.#lost = lost;
  }

  /** When any was last lost. */
  lostUntilMs(): number {
    return this.#lost === 0 ? this.#calmSinceMs : this.#world.nowMs;
  }

  join(self: SimProcess): RunChanges {
    const member: Member = { self, listeners: new Set() };
    this.#members.push(member);
    const here = <K extends Kind>(kind: K, ids: readonly string[]): void => {
      for (const listener of member.listeners) listener[kind]?.(ids);
    };
    return {
      announce: (ids) => {
        self.after(0, "news", () => here("changed", ids));
        this.#tell(member, "changed", ids);
      },
      notifyStop: (ids) => {
        here("stop", ids);
        this.#tell(member, "stop", ids);
      },
      notifyRunnable: (ids) => {
        if (ids.length === 0) return;
        here("waiting", ids);
        this.#tell(member, "waiting", ids);
      },
      notifyLeft: (ids) => {
        here("left", ids);
        this.#tell(member, "left", ids);
      },
      subscribe: (listener) => {
        member.listeners.add(listener);
        return () => void member.listeners.delete(listener);
      },
    };
  }

  #tell(from: Member, kind: Kind, ids: readonly string[]): void {
    if (ids.length === 0) return;
    for (const member of this.#members) {
      if (member === from || member.self.isCrashed || member.listeners.size === 0) continue;
      const random = this.#world.chance(`${member.self.name} hears ${kind} of ${ids.join(" ")}`);
      if (random.isHit(this.#lost)) continue;
      member.self.after(random.between(0.2, 15), `hears ${kind}`, () => {
        for (const listener of member.listeners) listener[kind]?.(ids);
      });
    }
  }
}
