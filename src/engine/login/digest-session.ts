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

/** One request with its repetitions: the target says how to prove the password, and is answered. */
export interface DigestExchange {
  /** The header `Authorization` of a hop to the request's own origin, or null: the target has not asked yet. */
  authorize(url: URL, method: string): string | null;
  /**
   * Whether the request has to be sent once more, with what the target has asked for: a 401 was not processed. Throws OutboundError for a
   * question that can't be answered.
   */
  mustRepeat(response: OutboundResponse): boolean;
}

/** A nonce of one origin. No two requests use it at once: strict targets refuse a count that is not above the last one. */
interface Nonce {
  readonly challenge: DigestChallenge;
  readonly cnonce: string;
  count: number;
}

/** Sent with no nonce, with one that is over, and with one that is not. */
const REPEATS_MAX = 2;

/** RFC 7616 for all requests of a session. The password itself stays here. */
export function openDigest(user: DigestUser): (method: string) => DigestExchange {
  const idle = new Map<string, Nonce[]>();
  /** Where the target has taken the password: a nonce that it refuses there is over, whether it says so or not. */
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
        // Another origin than the request's own is told nothing.
        if (origin === null || from.origin !== origin) return false;
        if (response.status !== 401) {
          if (nonce === null) return false;
          taken.add(origin);
          giveBack(origin, nextNonce(nonce, response.headers.get("authentication-info") ?? ""));
          return false;
        }
        // The request itself was processed: it is the next page that asks.
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

/** What the target wants to see next; of `-sess` the key would stay that of the first one, so that one is used until it is over. */
function nextNonce(used: Nonce, header: string): Nonce {
  const next = used.challenge.algorithm.isSession ? null : readNextNonce(header);
  return next === null || next === "" || next === used.challenge.nonce
    ? used
    : { challenge: { ...used.challenge, nonce: next }, cnonce: newCnonce(), count: 0 };
}
