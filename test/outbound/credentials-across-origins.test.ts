import assert from "node:assert/strict";
import { test } from "node:test";
import { openTarget } from "#engine/login/target-session.ts";
import { OutboundError, type OutboundRequest, type OutboundResponse } from "#domain/http-exchange.ts";
import { Secret } from "#lib/secret.ts";
import type { LoginSession } from "#strategies/define-login.ts";
import { openJar } from "#strategies/http/session-jar.ts";
import { openTestGate, startTarget, startTcp, type Seen } from "./targets.ts";

/** Every part of a request that may hold a secret, each with a value of its own. */
const SECRETS = {
  authorization: "canary-authorization",
  apiKey: "canary-x-api-key",
  odd: "canary-odd-header",
  cookie: "canary-cookie",
  ownHeader: "canary-own-header",
  query: "canary-query",
  path: "canary-path",
  body: "canary-body",
};
const SESSION_HEADERS = {
  authorization: SECRETS.authorization,
  "x-api-key": SECRETS.apiKey,
  "vendor-thing": SECRETS.odd,
};

const REQUEST: OutboundRequest = {
  method: "GET",
  url: `/start/${SECRETS.path}`,
  query: [["api_key", SECRETS.query]],
  headers: [["X-Own", SECRETS.ownHeader]],
  redirectsMax: 5,
};

function loggedIn(origin: string): Secret<LoginSession> {
  const jar = openJar();
  jar.absorb(origin, [`sid=${SECRETS.cookie}; Path=/`]);
  return new Secret({ headers: SESSION_HEADERS, cookies: jar.serialise() });
}

const secretsIn = (seen: Seen | undefined): string[] =>
  Object.entries(SECRETS).flatMap(([name, value]) =>
    JSON.stringify(seen ?? "").includes(value) ? [name] : [],
  );

async function outcomeOf(exchange: Promise<OutboundResponse>): Promise<string> {
  return await exchange.then(
    (response) => String(response.status),
    (error: unknown) => {
      assert.ok(error instanceof OutboundError, String(error));
      assert.deepEqual(
        Object.values(SECRETS).filter((value) =>
          `${error.message} ${error.stack} ${String(error.cause)}`.includes(value),
        ),
        [],
      );
      return error.failure;
    },
  );
}

/** First redirects everything to `to()`; every other target only keeps what it gets. */
async function twoOrigins(context: Parameters<typeof startTarget>[0], status: number, to: () => string) {
  const first = await startTarget(context, (seen, response) => {
    if (seen.url.startsWith("/start")) response.writeHead(status, { location: to() });
    response.end("moved");
  });
  const second = await startTarget(context, (_seen, response) => response.end("arrived"), "127.0.0.2");
  return { first, second };
}

for (const status of [301, 302, 303, 307, 308]) {
  for (const method of ["GET", "POST", "PUT"]) {
    test(`${method}, ${status}: nothing secret reaches another origin, listed or not`, async (context) => {
      let place = "";
      const { first, second } = await twoOrigins(context, status, () => place);
      const gate = openTestGate(context, { allow: ["127.0.0.0/8"] });
      const body = method === "GET" ? {} : { body: SECRETS.body };
      for (const origins of [[first.origin, second.origin], [first.origin]]) {
        const target = openTarget(gate, origins, loggedIn(first.origin));
        for (place of [`${second.origin}/x`, `${second.origin.slice("http:".length)}/x`]) {
          const outcome = await outcomeOf(
            target.send({ ...REQUEST, method, ...body }, new AbortController().signal),
          );
          // The control: all of it went to the origin that it belongs to.
          const all = Object.keys(SECRETS).filter((name) => name !== "body" || method !== "GET");
          assert.deepEqual(secretsIn(first.seen.at(-1)), all);
          const isCarried = status >= 307 || (method === "PUT" && status !== 303);
          assert.equal(outcome, origins.length === 1 || isCarried ? "redirect_outside" : "200");
          if (outcome !== "200")
            assert.equal(second.connections, origins.length === 1 ? second.connections : 0);
        }
      }
      for (const seen of second.seen) {
        assert.deepEqual(secretsIn(seen), []);
        assert.deepEqual([seen.method, seen.body], ["GET", ""]);
      }
      const follows = status < 307 && (method !== "PUT" || status === 303);
      assert.equal(second.seen.length, follows ? 2 : 0);
    });
  }
}

test("inside one origin a redirect keeps the session, its cookies and the request's own headers", async (context) => {
  const { first } = await twoOrigins(context, 307, () => "/there");
  const gate = openTestGate(context, { allow: ["127.0.0.0/8"] });
  const target = openTarget(gate, [first.origin], loggedIn(first.origin));
  const sent = { ...REQUEST, method: "POST", body: SECRETS.body };
  assert.equal(await outcomeOf(target.send(sent, new AbortController().signal)), "200");
  assert.equal(first.seen[1]?.url, "/there");
  assert.deepEqual(secretsIn(first.seen[1]), [
    "authorization",
    "apiKey",
    "odd",
    "cookie",
    "ownHeader",
    "body",
  ]);
});

test("credentials are added hop by hop, in the gate, after the hop's origin was accepted", async (context) => {
  const { first } = await twoOrigins(context, 302, () => "http://127.0.0.3:9/");
  const gate = openTestGate(context, { allow: ["127.0.0.0/8"] });
  let reveals = 0;
  class Counted extends Secret<LoginSession> {
    override reveal(): LoginSession {
      reveals++;
      return super.reveal();
    }
  }
  const target = openTarget(
    gate,
    [first.origin],
    new Counted({ headers: SESSION_HEADERS, cookies: null }),
    openJar(),
  );
  // Opening a target looks once whether the session has a certificate; what counts is each request.
  reveals = 0;
  const send = async (url: string): Promise<string> =>
    await outcomeOf(target.send({ ...REQUEST, url }, new AbortController().signal));
  assert.equal(await send("http://127.0.0.3:9/"), "refused");
  assert.equal(await send("ftp://127.0.0.1/"), "refused");
  assert.equal(reveals, 0, "nothing is opened for a request that the gate refuses");
  assert.equal(await send("/start"), "redirect_outside");
  assert.equal(reveals, 1, "once for the first hop, never for the hop that was refused");
});

test("whatever a url's data says, a request with a credential stays at the strategy's hosts", async (context) => {
  const trap = await startTcp(context, undefined, "127.0.0.2");
  const target = await startTarget(context, (_seen, response) => response.end("here"));
  const gate = openTestGate(context, { allow: ["127.0.0.0/8"] });
  const { send } = openTarget(gate, [target.origin], loggedIn(target.origin));
  const there = `127.0.0.2:${trap.port}`;
  const outside = [
    `http://${there}/`,
    `https://${there}/`,
    `//${there}/`,
    `/\\${there}/`,
    `\\\\${there}/`,
    `\t//${there}/`,
    `/\n/${there}/`,
    ` //${there}/`,
    `http:\\\\${there}/`,
    `http://${target.origin.slice(7)}@${there}/`,
    `http://${there}:80@${there}/`,
    `ftp://${there}/`,
    `file:///etc/passwd`,
    `data:text/plain,x`,
    `blob:${target.origin}/1`,
    `http://[`,
  ];
  for (const url of outside)
    assert.equal(await outcomeOf(send({ ...REQUEST, url }, new AbortController().signal)), "refused", url);
  assert.equal(trap.connections, 0);
  assert.equal(target.seen.length, 0);
  assert.equal(await outcomeOf(send({ ...REQUEST, url: "/a?b#c" }, new AbortController().signal)), "200");
});
