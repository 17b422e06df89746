import { fieldVariable } from "#domain/field-values.ts";
import { OutboundError } from "#domain/http-exchange.ts";
import { limits } from "#domain/limits.ts";
import type { Strategy } from "#domain/strategy.ts";
import { GateError } from "#outbound/gate-error.ts";
import type { OAuthAccess } from "#strategies/oauth/oauth-access.ts";
import type { Needs } from "#actions/services.ts";

/**
 * Access to a strategy's authorization server while an end user connects. The end user's values are in scope as `$credential` and
 * are only sent to these origins, regardless of the strategy's document.
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
  // As in a run, no expression has access to the seed of one-time codes.
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
          // Translated into the domain's error: the gate is in a lower layer and does not know it.
          if (error instanceof GateError) throw new OutboundError(error.failure, error.message);
          throw error;
        }
      },
    });
  } finally {
    expressions.release();
  }
}
