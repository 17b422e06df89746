import { OutboundError, type OutboundResponse } from "#domain/http-exchange.ts";
import { isReadMethod } from "#domain/http-methods.ts";
import {
  digestHeader,
  newCnonce,
  readChallenge,
  readNextNonce,
  type DigestChallenge,
  type DigestUser,
} from "#strategies/digest-auth.ts";

/** One request with its repetitions: the target sends a challenge, and the repetition answers it. */
export interface DigestExchange {
  /** The `Authorization` header for a hop to the request's own origin; null: there was no challenge yet. */
  authorize(url: URL, method: string): string | null;
  /**
   * Whether the request must be repeated with an answer to the challenge: a request that got 401 was not processed. Throws OutboundError
   * for an unsupported challenge.
   */
  mustRepeat(response: OutboundResponse): boolean;
}

/** A nonce of one origin. Concurrent requests never share it: strict targets reject a count that does not increase. */
interface Nonce {
  readonly challenge: DigestChallenge;
  readonly cnonce: string;
  count: number;
}

/** Attempts: without a nonce, with an expired one, and with a fresh one. */
const REPEATS_MAX = 2;

/** RFC 7616 for all requests of a session. The password does not leave this class. */
export function openDigest(user: DigestUser): (method: string) => DigestExchange {
  const idle = new Map<string, Nonce[]>();
  /** Origins that have accepted the password: if they reject a nonce, it has expired, whether or not they say so. */
  const taken = new Set<string>();
  const giveBack = (origin: string, nonce: Nonce): void => {
    idle.set(origin, [...(idle.get(origin) ?? []), nonce]);
  };
  return (method) => {
    let origin: string | null = null;
    let nonce: Nonce | null = null;
    let repeats = 0;
    const repeatWith = (challenge: DigestChallenge): boolean => {
      nonce = { challenge, cnonce: newCnonce(), count: 0 };
      repeats += 1;
      return repeats <= REPEATS_MAX;
    };
    return {
      authorize(url, hopMethod) {
        ({ origin } = url);
        nonce ??= idle.get(origin)?.pop() ?? null;
        if (nonce === null) return null;
        nonce.count += 1;
        const { count, cnonce } = nonce;
        const target = `${url.pathname}${url.search}`;
        return digestHeader(nonce.challenge, user, { method: hopMethod, target, count, cnonce });
      },
      mustRepeat(response) {
        const from = new URL(response.url);
        // Other origins than the request's own get no answer.
        if (origin === null || from.origin !== origin) return false;
        if (response.status !== 401) {
          if (nonce === null) return false;
          taken.add(origin);
          giveBack(origin, nextNonce(nonce, response.headers.get("authentication-info") ?? ""));
          return false;
        }
        // The request itself was processed: the challenge is for the next page.
        if (response.isRedirected && !isReadMethod(method)) return false;
        const challenge = readChallenge(response.headers.get("www-authenticate") ?? "");
        if (challenge === "none") return false;
        if ("problem" in challenge) throw new OutboundError("refused", `${from.host} ${challenge.problem}`);
        if (nonce === null) return repeatWith(challenge);
        const isOver = challenge.isStale || (taken.has(origin) && challenge.nonce !== nonce.challenge.nonce);
        return isOver && repeatWith(challenge);
      },
    };
  };
}

/** The nonce to use next. With `-sess` the key depends on the first nonce, so that one is used until it expires. */
function nextNonce(used: Nonce, header: string): Nonce {
  const next = used.challenge.algorithm.isSession ? null : readNextNonce(header);
  return next === null || next === "" || next === used.challenge.nonce
    ? used
    : { challenge: { ...used.challenge, nonce: next }, cnonce: newCnonce(), count: 0 };
}
