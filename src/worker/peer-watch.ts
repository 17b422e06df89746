import type { SeenWorker } from "#db/runs/workers.ts";
import { limits } from "#domain/limits.ts";

/** However long it was until the next look, no more of it counts as silence that was seen. */
const SEEN_PART = 10;

interface Peer {
  sign: string;
  /** For how long this worker has seen it without another sign of life, in milliseconds of its own clock. */
  silentMs: number;
}

/**
 * Which of the other workers are dead, by what this one has seen with its own clock, which does not step. One that gives no sign of life
 * is dead after many looks: a database that stands still stands still for all, and the looks with it. One whose lock is free has ended,
 * unless the server is another one since then, or this worker's own way to it was cut not long ago: then all locks may be gone.
 */
export class PeerWatch {
  readonly #peers = new Map<string, Peer>();
  #lookedAtMs: number | null = null;
  #disturbedAtMs = -Infinity;

  /** This worker's own connection was lost, or a look failed. */
  disturb(nowMs: number): void {
    this.#disturbedAtMs = nowMs;
  }

  /** Of the workers that were seen, those that are dead. `askedAtMs`, `nowMs`: the look began and ended then, by `performance.now()`. */
  judge(
    selfId: string,
    seen: readonly SeenWorker[],
    { askedAtMs, nowMs }: { readonly askedAtMs: number; readonly nowMs: number },
  ): readonly SeenWorker[] {
    const sinceMs = nowMs - (this.#lookedAtMs ?? askedAtMs);
    this.#lookedAtMs = nowMs;
    const self = seen.find(({ id }) => id === selfId);
    if (sinceMs > limits.heartbeatMs || self?.hasLock !== true) this.disturb(nowMs);
    const peers = seen.filter(({ id }) => id !== selfId);
    this.#forgetAllBut(peers);
    const areLocksSigns = nowMs - this.#disturbedAtMs >= limits.heartbeatStaleMs;
    return peers.filter((peer) => {
      const silentMs = this.#silentMs(peer, Math.min(sinceMs, limits.heartbeatStaleMs / SEEN_PART));
      return silentMs >= limits.heartbeatStaleMs || (areLocksSigns && peer.isOfServer && !peer.hasLock);
    });
  }

  #silentMs({ id, sign }: SeenWorker, sinceMs: number): number {
    const known = this.#peers.get(id);
    const silentMs = known?.sign === sign ? known.silentMs + sinceMs : 0;
    this.#peers.set(id, { sign, silentMs });
    return silentMs;
  }

  #forgetAllBut(peers: readonly SeenWorker[]): void {
    const ids = new Set(peers.map(({ id }) => id));
    for (const id of this.#peers.keys()) if (!ids.has(id)) this.#peers.delete(id);
  }
}
