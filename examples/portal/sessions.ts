import { randomBytes, timingSafeEqual } from "node:crypto";

/** How far a visitor has come. The cookie of a stage is worthless in the next one: the id rotates in between. */
export type Stage = (
  | { readonly stage: "anonymous" }
  | { readonly stage: "code"; readonly username: string }
  | { readonly stage: "signed_in"; readonly username: string }
) & {
  /** A path of the portal's own that waits for the sign-in. */
  readonly returnTo?: string | undefined;
};

export type Session = Stage & {
  readonly id: string;
  /** In every form of this session, and checked when it comes back. */
  readonly csrf: string;
};

export interface Sessions {
  open(stage: Stage): Session;
  /** The live session of that id; finding it counts as a sign of life. */
  find(id: string | undefined): Session | undefined;
  close(id: string): void;
}

const SESSIONS_MAX = 10_000;

/** In memory: a restart signs everybody out. `idleMs`: a session not seen for that long is gone. */
export function createSessions(idleMs: number): Sessions {
  const live = new Map<string, { session: Session; seenMs: number }>();
  return {
    open(stage) {
      // A Map keeps its order and `find` moves what it finds to the end, so the first one is the longest unseen.
      const [oldest] = live.keys();
      if (live.size >= SESSIONS_MAX && oldest !== undefined) live.delete(oldest);
      const session: Session = { ...stage, id: token(), csrf: token() };
      live.set(session.id, { session, seenMs: performance.now() });
      return session;
    },
    find(id) {
      const entry = id === undefined ? undefined : live.get(id);
      if (!entry) return undefined;
      live.delete(entry.session.id);
      if (performance.now() - entry.seenMs > idleMs) return undefined;
      live.set(entry.session.id, { session: entry.session, seenMs: performance.now() });
      return entry.session;
    },
    close(id) {
      live.delete(id);
    },
  };
}

export function csrfMatches(session: Session, submitted: string): boolean {
  const expected = Buffer.from(session.csrf);
  const given = Buffer.from(submitted);
  return expected.length === given.length && timingSafeEqual(expected, given);
}

const token = (): string => randomBytes(24).toString("base64url");
