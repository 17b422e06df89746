/** Requests of a page that were refused. */
export interface RefusedRequest {
  /** The origin; for a tunnel its host and port as `https:`, because a tunnel does not say more. */
  readonly origin: string;
  /** What asked, as the driver calls it (`document`, `script`, `fetch`, …); null: only the gate saw it. */
  readonly kind: string | null;
  readonly count: number;
}

const LISTED_MAX = 100;

/** What was refused, counted by origin and kind, so that an author sees why a page stays white. */
export class RefusedRequests {
  readonly #counts = new Map<string, RefusedRequest>();

  add(origin: string, kind: string | null): void {
    const key = `${kind ?? ""} ${origin}`;
    const count = (this.#counts.get(key)?.count ?? 0) + 1;
    if (count > 1 || this.#counts.size < LISTED_MAX) this.#counts.set(key, { origin, kind, count });
  }

  list(): readonly RefusedRequest[] {
    return [...this.#counts.values()];
  }
}
