import { fieldVariable } from "#domain/field-values.ts";
import { OutboundError } from "#domain/http-exchange.ts";
import { limits } from "#domain/limits.ts";
import type { Strategy } from "#domain/strategy.ts";
import { GateError } from "#outbound/gate-error.ts";
import type { OAuthAccess } from "#strategies/oauth/oauth-access.ts";
import type { Needs } from "#actions/services.ts";

/**
 * Works with a strategy's authorization server while an end user connects; what was typed is in scope as `$credential`, and leaves for
 * these origins alone, whatever the strategy names.
 */
export async function withOAuthAccess<T>(
  services: Needs<"clientSecret" | "gate" | "loginExpressions">,
  {
    accountId,
    strategy,
    origins: allowed,
  }: { readonly accountId: string; readonly strategy: Strategy; readonly origins: readonly string[] },
  values: ReadonlyMap<string, string>,
  work: (access: OAuthAccess) => Promise<T>,
): Promise<T> {
  // As in a run: the seed of one-time codes is in no expression's scope.
  const types = new Map(strategy.fields.map(({ key, type }) => [key, type]));
  const credential = Object.fromEntries(
    [...values].map(([key, value]) => [key, fieldVariable(types.get(key) ?? "text", value)]),
  );
  const expressions = services.loginExpressions.bind({ credential });
  try {
    return await work({
      expressions,
      clientSecret: async (reference) => await services.clientSecret(accountId, reference),
      send: async ({ method, url, headers = [], body, maxBytes, timeoutMs }, origins) => {
        try {
          return await services.gate.send(
            { method, url: new URL(url), headers, body },
            {
              origins: origins.filter((origin) => allowed.includes(origin)),
              redirectsMax: 0,
              maxBytes: maxBytes ?? limits.oauthResponseBytesMax,
              timeoutMs: timeoutMs ?? limits.requestTimeoutMs,
            },
            new AbortController().signal,
          );
        } catch (error) {
          // In the words of the domain: the gate lives below it and can't know them.
          if (error instanceof GateError) throw new OutboundError(error.failure, error.message);
          throw error;
        }
      },
    });
  } finally {
    expressions.release();
  }
}
