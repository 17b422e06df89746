import { readClock } from "#db/connection/clock.ts";
import { findTokens, saveTokens } from "#db/credentials/oauth.ts";
import type { MayLeave } from "#domain/http-exchange.ts";
import { failpoint } from "#lib/failpoint.ts";
import { readWithOrigins, writeWithOrigins } from "#domain/destination.ts";
import { LoginFailure } from "#strategies/define-login.ts";
import type { OAuthLogin, TokenSet } from "#strategies/oauth/oauth-access.ts";
import { openJar } from "#strategies/http/session-jar.ts";
import type { SealBinding } from "#vault/binding.ts";
import type { Destination } from "./destination.ts";
import { mustBeBound, openSealed } from "./open-credential-bytes.ts";
import { recordOpening, type BeforeHop } from "./record-use.ts";
import type { EngineServices } from "#engine/services.ts";
import { openTarget } from "./target-session.ts";

interface TokenReference {
  readonly accountId: string;
  readonly credentialId: string;
  readonly strategyId: string;
  /** The actor, for the audit log. */
  readonly runId: string;
  readonly beforeHop: BeforeHop;
  readonly mayLeave: MayLeave;
  readonly destination: Destination;
}

/**
 * A credential's tokens, for its login only: as for `open-credential.ts`, only `engine/login/login.ts` may import this module.
 * The caller holds the login lock of the credential (`takeLogin`).
 */
export function openOAuthLogin(services: EngineServices, reference: TokenReference): OAuthLogin {
  let version = 0;
  return {
    clientSecret: async (asked) => await services.clientSecret(reference.accountId, asked),
    nowMs: async () => await readClock(services.db),
    /**
     * Has its own time limit and ignores the run's: a run that is stopped between an exchange and `keep` would lose the only
     * refresh token that the target still accepts.
     */
    send: async (request, origins) => {
      const target = openTarget(services.gate, origins, null, openJar(), reference.beforeHop);
      return await target.send(request, new AbortController().signal, undefined, reference.mayLeave);
    },
    tokens: async () => {
      const found = await recordOpening(services, reference, "oauth_tokens", async (tx) =>
        findTokens(tx, reference.accountId, reference.credentialId),
      );
      if (!found) return null;
      version = found.version;
      const { value, origins } = await openSealed(
        services,
        "tokens",
        found,
        binding(reference, version),
        readWithOrigins<TokenSet>,
      );
      // Not only the credential's own origins: an attacker could seal another credential into its row, but has not sealed these tokens.
      reference.destination.narrow(mustBeBound("tokens", reference.credentialId, origins));
      return value;
    },
    keep: async (tokens) => {
      const plain = Buffer.from(writeWithOrigins(tokens, reference.destination.sealed()), "utf8");
      const sealed = await services.vault.seal(plain, binding(reference, version + 1));
      plain.fill(0);
      await failpoint("oauth.before_keep");
      const kept = await saveTokens(services.db, {
        accountId: reference.accountId,
        credentialId: reference.credentialId,
        version: version + 1,
        ...sealed,
        expiresAtMs: tokens.expiresAtMs,
      });
      if (!kept)
        throw new LoginFailure(
          "login (oauth2): the credential was deleted, or its tokens were renewed elsewhere",
        );
      version += 1;
    },
  };
}

/** An older value that replaces a newer one can't be opened. */
function binding(reference: TokenReference, version: number): SealBinding {
  return {
    purpose: "oauth_token",
    accountId: reference.accountId,
    rowId: reference.credentialId,
    strategyId: reference.strategyId,
    version: String(version),
  };
}
