// SECURITY.md: whatever address a server names, a kept secret leaves for its own origins alone.
import assert from "node:assert/strict";
import { after, test } from "node:test";
import { withOAuthAccess } from "#actions/sessions/oauth-access.ts";
import type { Services } from "#actions/services.ts";
import { readStrategy } from "#domain/strategy.ts";
import { openEvaluator } from "#expressions/evaluator.ts";
import { openGate } from "#outbound/gate.ts";
import { openOAuthServer } from "#strategies/oauth/oauth-server.ts";
import { requestTokens, revokeTokens } from "#strategies/oauth/oauth-tokens.ts";
import { openTarget } from "../documents/target.ts";

const [gate, loginExpressions] = [openGate({ allow: ["127.0.0.0/8"] }), openEvaluator({ threads: 1 })];
after(async () => await Promise.all([gate.close(), loginExpressions.close()]));

test("a revocation endpoint at another of the strategy's hosts gets nothing", async () => {
  await using login = await openTarget();
  await using host = await openTarget();
  login.on("GET /.well-known/openid-configuration", {
    json: {
      issuer: login.url,
      token_endpoint: `${login.url}/token`,
      revocation_endpoint: `${host.url}/revoke`,
    },
  });
  login.on("POST /token", { json: { access_token: "a", token_type: "Bearer" } });
  host.on("POST /revoke", { status: 200 });
  const strategy = readStrategy({
    strategy: "strat_x",
    account: "acme",
    hosts: [host.url],
    login: {
      type: "oauth2",
      grant: "client_credentials",
      issuer: login.url,
      client_id: "x",
      client_secret: { secret: "NORTHWIND" },
    },
  });
  const services = (origins: readonly string[]): Services =>
    ({
      gate,
      loginExpressions,
      clientSecret: async () => ({ kind: "found", value: "canary", origins }),
    }) as unknown as Services;
  const place = { accountId: "a", strategy, origins: [login.url, host.url] };
  const revoke = async (origins: readonly string[]): Promise<boolean> =>
    await withOAuthAccess(services(origins), place, new Map(), async (access) => {
      const server = await openOAuthServer(access, strategy);
      return await revokeTokens(server, await requestTokens(server, null, 0));
    });
  assert.equal(await revoke([login.url]), false);
  assert.deepEqual(host.all, []);
  assert.equal(login.seen("POST /token").length, 1);
  assert.equal(await revoke([login.url, host.url]), true);
  assert.equal(host.seen("POST /revoke").length, 1);
});
