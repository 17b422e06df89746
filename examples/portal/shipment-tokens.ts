import { randomBytes } from "node:crypto";
import type { FastifyRequest } from "fastify";

/** The sessions of the shipments' page: a token that its script keeps and sends, in place of a cookie. */
export interface ShipmentTokens {
  give(username: string): string;
  /** Whose token a request has; undefined: nobody's. */
  usernameOf(request: FastifyRequest): string | undefined;
  end(request: FastifyRequest): void;
}

const TOKENS_MAX = 10_000;

export function createShipmentTokens(): ShipmentTokens {
  const live = new Map<string, string>();
  return {
    give(username) {
      const [oldest] = live.keys();
      if (live.size >= TOKENS_MAX && oldest !== undefined) live.delete(oldest);
      const token = randomBytes(24).toString("base64url");
      live.set(token, username);
      return token;
    },
    usernameOf: (request) => live.get(bearerOf(request)),
    end: (request) => void live.delete(bearerOf(request)),
  };
}

/** The access token in the header of a request; empty when there is none. */
export const bearerOf = (request: FastifyRequest): string =>
  /^Bearer (\S+)$/i.exec(request.headers.authorization ?? "")?.[1] ?? "";
