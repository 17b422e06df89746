// docs/strategies.md#oauth2: a request that is answered 401 was not processed and is sent again, unless it was redirected before.
import assert from "node:assert/strict";
import { test } from "node:test";
import { openRenewingTarget } from "#engine/login/renewing-target.ts";
import { openTarget } from "#engine/login/target-session.ts";
import { Secret } from "#lib/secret.ts";
import { openGate } from "#outbound/gate.ts";
import type { LoginSession } from "#strategies/define-login.ts";
import { startTarget } from "../outbound/targets.ts";

const session = (token: string): Secret<LoginSession> =>
  new Secret({ headers: { authorization: `Bearer ${token}` }, cookies: null });

test("a write whose answer is a redirect to a page that says 401 is not sent a second time; a read is", async (t) => {
  const target = await startTarget(t, (seen, response) => {
    if (seen.url === "/new") response.writeHead(303, { location: "/done" }).end();
    else if (seen.headers.authorization === "Bearer old") response.writeHead(401).end();
    else response.end("hello");
  });
  const gate = openGate({ allow: ["127.0.0.0/8"] });
  t.after(() => gate.close());
  const open = () =>
    openRenewingTarget(
      session("old"),
      (given, jar) => openTarget(gate, [target.origin], given, jar),
      () => Promise.resolve(session("new")),
    );
  const send = async (method: string, url: string): Promise<number> =>
    (await open().send({ method, url, redirectsMax: 5 }, new AbortController().signal)).status;
  const times = (url: string): number => target.seen.filter((seen) => seen.url === url).length;
  assert.equal(await send("POST", "/new"), 401);
  assert.deepEqual([times("/new"), times("/done")], [1, 1]);
  assert.equal(await send("GET", "/new"), 200);
  assert.equal(await send("POST", "/done"), 200);
});
