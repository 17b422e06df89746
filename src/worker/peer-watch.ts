import type { SeenWorker } from "#db/runs/workers.ts";
import { limits } from "#domain/limits.ts";

/** The maximum time between two polls that counts as observed silence. */
const SEEN_PART = 10;

interface Peer {
  sign: string;
  /** How long this worker has observed its silence, in milliseconds of its own clock. */
  silentMs: number;
}

/**
 * Decides which other workers are dead, by this worker's own observations and monotonic clock. A worker without heartbeats is dead after
 * many polls: when the database stalls, heartbeats and polls stall together. A worker whose lock is free has ended, unless the server
 * was replaced since then or this worker's own connection was cut recently: then all locks may be lost.
 */
export class PeerWatch {
  readonly #peers = new Map<string, Peer>();
  #lookedAtMs: number | null = null;
  #disturbedAtMs = -Infinity;

  /** This worker's own connection was lost, or a poll failed. */
  disturb(nowMs: number): void {
    this.#disturbedAtMs = nowMs;
  }

  /** Returns the dead ones of the workers seen. `askedAtMs`, `nowMs`: start and end of the poll, by `performance.now()`. */
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
