import assert from "node:assert/strict";
import type { ServerResponse } from "node:http";
import { test } from "node:test";
import type { GatePolicy } from "#outbound/gate.ts";
import {
  assertFails,
  CANARY,
  openTestGate,
  policyFor,
  send,
  startTarget,
  startTcp,
  type Seen,
} from "./targets.ts";

const loopback = { allow: ["127.0.0.0/8"] };

/** `/<status>?to=<url>` redirects there; everything else answers 200. */
const redirector = (seen: Seen, response: ServerResponse): void => {
  const url = new URL(seen.url, "http://target");
  const to = url.searchParams.get("to");
  if (to === null) response.end("arrived");
  else
    response
      .writeHead(Number(url.pathname.slice(1)), {
        location: to,
        "set-cookie": `seen${url.pathname.slice(1)}=1`,
      })
      .end("moved");
};

const via = (origin: string, status: number, to: string): string =>
  `${origin}/${status}?to=${encodeURIComponent(to)}`;

test("without redirects the redirect itself is the response", async (context) => {
  const target = await startTarget(context, redirector);
  const response = await send(
    openTestGate(context, loopback),
    via(target.origin, 302, "https://evil.example/"),
    policyFor([target.origin], { redirectsMax: 0 }),
  );
  assert.equal(response.status, 302);
  assert.equal(response.headers.get("location"), "https://evil.example/");
  assert.equal(target.seen.length, 1);
});

test("inside one origin a redirect keeps headers, and method and body as fetch does", async (context) => {
  const target = await startTarget(context, redirector);
  const gate = openTestGate(context, loopback);
  const cases = [
    [301, "POST", "GET", ""],
    [302, "POST", "GET", ""],
    [303, "POST", "GET", ""],
    [303, "PUT", "GET", ""],
    [302, "PUT", "PUT", "secret"],
    [307, "POST", "POST", "secret"],
    [308, "POST", "POST", "secret"],
  ] as const;
  for (const [status, method, expectedMethod, body] of cases) {
    const response = await send(gate, via(target.origin, status, "/there?x=1"), policyFor([target.origin]), {
      method,
      headers: [
        ["X-Api-Key", "k"],
        ["Content-Type", "text/x"],
      ],
      body: "secret",
    });
    const seen = target.seen.at(-1);
    assert.equal(
      `${seen?.method} ${seen?.url} ${seen?.body}`,
      `${expectedMethod} /there?x=1 ${body}`,
      `${status} ${method}`,
    );
    assert.equal(seen?.headers["x-api-key"], "k");
    assert.equal(seen?.headers["content-type"], body === "" ? undefined : "text/x");
    assert.equal(response.url, `${target.origin}/there?x=1`);
  }
});

test("to a second allowed origin go no body, no custom and no auth headers; what the hop adds is asked for that hop", async (context) => {
  const first = await startTarget(context, redirector);
  const second = await startTarget(context, redirector, "127.0.0.2");
  const gate = openTestGate(context, loopback);
  const hops: unknown[] = [];
  const cookies: unknown[] = [];
  const policy: GatePolicy = policyFor([first.origin, second.origin], {
    prepareHop(url, { sameOriginAsFirst }) {
      hops.push([url.origin, sameOriginAsFirst]);
      return sameOriginAsFirst
        ? [
            ["authorization", CANARY],
            ["cookie", "first=1"],
          ]
        : [["cookie", "second=1"]];
    },
    absorb: (url, setCookie) => cookies.push([url.origin, ...setCookie]),
  });
  const back = `${first.origin}/back`;
  const response = await send(gate, via(first.origin, 303, via(second.origin, 302, back)), policy, {
    method: "POST",
    headers: [
      ["X-Api-Key", CANARY],
      ["Authorization", CANARY],
      ["Cookie", `own=${CANARY}`],
      ["Accept-Language", "de"],
      ["Content-Type", "text/x"],
    ],
    body: CANARY,
  });
  assert.equal(response.url, back);
  const [crossed] = second.seen;
  assert.equal(`${crossed?.method} ${crossed?.body}`, "GET ");
  assert.equal(crossed?.headers.cookie, "second=1");
  assert.equal(crossed?.headers["accept-language"], "de");
  assert.ok(!JSON.stringify(crossed).includes(CANARY));
  // What was dropped on the way out does not come back; the first origin's own headers do.
  assert.equal(first.seen[1]?.headers["x-api-key"], undefined);
  assert.equal(first.seen[1]?.headers.cookie, "first=1");
  assert.equal(first.seen[1]?.headers.authorization, CANARY);
  assert.deepEqual(hops, [
    [first.origin, true],
    [second.origin, false],
    [first.origin, true],
  ]);
  assert.deepEqual(cookies, [[first.origin, "seen303=1"], [second.origin, "seen302=1"], [first.origin]]);
});

test("a redirect outside the allowed origins fails, and nobody there is called", async (context) => {
  const trap = await startTcp(context);
  const target = await startTarget(context, redirector);
  const gate = openTestGate(context, loopback);
  const outside = [
    `http://127.0.0.1:${trap.port}/${CANARY}`,
    `//127.0.0.1:${trap.port}/`,
    `https://127.0.0.1:${target.port}/`,
    `http://u:${CANARY}@127.0.0.1:${target.port}/`,
    `http://localhost:${target.port}/`,
    "file:///etc/passwd",
    `javascript:${CANARY}`,
    `blob:${target.origin}/1`,
    "http://[",
  ];
  for (const to of outside)
    await assertFails(
      send(gate, via(target.origin, 302, to), policyFor([target.origin])),
      "redirect_outside",
    );
  assert.equal(trap.connections, 0);
});

test("a redirect to an allowed origin with a private address is refused at the hop", async (context) => {
  const trap = await startTcp(context, undefined, "127.0.0.2");
  const target = await startTarget(context, redirector);
  const gate = openTestGate(context, { allow: ["127.0.0.1/32"] });
  for (const host of ["127.0.0.2", "169.254.169.254", "[::ffff:127.0.0.1]", "localhost.example"]) {
    const origin = new URL(`http://${host}:${trap.port}`).origin;
    const strict =
      host === "localhost.example"
        ? openTestGate(context, { allow: ["127.0.0.1/32"], resolve: () => Promise.resolve(["127.0.0.2"]) })
        : gate;
    await assertFails(
      send(strict, via(target.origin, 302, origin), policyFor([target.origin, origin])),
      // The first hop was sent: nobody may take the request for one that was not.
      "redirect_outside",
      /not public|an IPv4 address embedded/,
    );
  }
  assert.equal(trap.connections, 0);
});

test("307 and 308 never carry a body or a credential to another origin, allowed or not", async (context) => {
  const first = await startTarget(context, redirector);
  const second = await startTarget(context, redirector, "127.0.0.2");
  const gate = openTestGate(context, loopback);
  const policy = policyFor([first.origin, second.origin]);
  for (const status of [307, 308]) {
    const url = via(first.origin, status, second.origin);
    await assertFails(
      send(gate, url, policy, { method: "POST", body: CANARY }),
      "redirect_outside",
      /with a body/,
    );
    await assertFails(
      send(gate, url, policy, { headers: [["x-api-key", CANARY]] }),
      "redirect_outside",
      /with a credential/,
    );
    await assertFails(
      send(gate, url, { ...policy, prepareHop: () => [["authorization", CANARY]] }),
      "redirect_outside",
      /with a credential/,
    );
    assert.equal(second.seen.length, 0);
  }
  // Cookies are the jar's matter, and a plain GET carries nothing.
  const plain = await send(
    gate,
    via(first.origin, 308, second.origin),
    { ...policy, prepareHop: () => [["cookie", "a=1"]] },
    { headers: [["accept", "text/html"]] },
  );
  assert.equal(plain.text(), "arrived");
  await assertFails(
    send(gate, via(first.origin, 302, second.origin), policy, { method: "PUT", body: CANARY }),
    "redirect_outside",
    /with a body/,
  );
});

test("a chain of redirects ends at the policy's number", async (context) => {
  const target = await startTarget(context, (seen, response) => {
    const step = Number(seen.url.slice(1));
    if (step === 0) response.end("arrived");
    else response.writeHead(302, { location: `/${step - 1}` }).end("x".repeat(200_000));
  });
  const gate = openTestGate(context, loopback);
  assert.equal(
    (await send(gate, `${target.origin}/3`, policyFor([target.origin], { redirectsMax: 3 }))).text(),
    "arrived",
  );
  await assertFails(
    send(gate, `${target.origin}/4`, policyFor([target.origin], { redirectsMax: 3 })),
    "redirect_outside",
    /more than 3 times/,
  );
});

test("two places at once and a missing place: the first fails, the second is a response", async (context) => {
  const target = await startTarget(context, (seen, response) => {
    if (seen.url === "/two")
      response.writeHead(302, [
        ["Location", "/a"],
        ["Location", "/b"],
      ]);
    else response.writeHead(302);
    response.end();
  });
  const gate = openTestGate(context, loopback);
  assert.equal((await send(gate, `${target.origin}/none`, policyFor([target.origin]))).status, 302);
  await assertFails(
    send(gate, `${target.origin}/two`, policyFor([target.origin])),
    "redirect_outside",
    /several redirects at once/,
  );
});
