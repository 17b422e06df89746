// RFC 7616 against its own examples, and against a target that checks every proof as the RFC says.
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import type { ServerResponse } from "node:http";
import { test, type TestContext } from "node:test";
import { OutboundError, type OutboundRequest, type OutboundResponse } from "#domain/http-exchange.ts";
import { openTarget } from "#engine/login/target-session.ts";
import { Secret } from "#lib/secret.ts";
import { openGate } from "#outbound/gate.ts";
import { digestHeader, readChallenge, type DigestChallenge } from "#strategies/digest-auth.ts";
import { CANARY, startTarget, type Seen, type Target } from "../outbound/targets.ts";
import { assertLoginFails, findings, logIn } from "./login-context.ts";

const challengeOf = (header: string): DigestChallenge => {
  const read = readChallenge(header);
  assert.ok(read !== "none" && "nonce" in read, JSON.stringify(read));
  return read;
};

test("the examples of RFC 7616, 3.9.1 and 3.9.2 (by erratum 4897)", () => {
  const asked = (algorithm: string): string =>
    `Digest realm="http-auth@example.org", qop="auth, auth-int", algorithm=${algorithm}, nonce="7ypf/xlj9XXwfDPEoM4URrv/xwf94BcCAzFZH4GiTo0v", opaque="FQhe/qaU925kfnzjCev0ciny7QMkPqMAFRtzCUYo5tdS"`;
  const use = {
    method: "GET",
    target: "/dir/index.html",
    count: 1,
    cnonce: "f2/wE4q74E6zIJEtWaHKaf5wv/H5QzzpXusqGemxURZJ",
  };
  const mufasa = { username: "Mufasa", password: "Circle of Life" };
  for (const [algorithm, response] of [
    ["MD5", "8ca523f5e9506fed4657c9700eebdbec"],
    ["SHA-256", "753927fa0e85d155564e2e272a28d1802ca10daf4496794697cf8db5856cb6c1"],
  ] as const)
    assert.equal(
      digestHeader(challengeOf(asked(algorithm)), mufasa, use),
      `Digest username="Mufasa", realm="http-auth@example.org", uri="/dir/index.html", algorithm=${algorithm}, nonce="7ypf/xlj9XXwfDPEoM4URrv/xwf94BcCAzFZH4GiTo0v", nc=00000001, cnonce="f2/wE4q74E6zIJEtWaHKaf5wv/H5QzzpXusqGemxURZJ", qop=auth, response="${response}", opaque="FQhe/qaU925kfnzjCev0ciny7QMkPqMAFRtzCUYo5tdS"`,
    );
  // Both at once, as the example has them: the stronger one is answered.
  assert.equal(challengeOf(`${asked("MD5")}, ${asked("SHA-256")}`).algorithmText, "SHA-256");
  const doe = challengeOf(
    'Digest realm="api@example.org", qop="auth", algorithm=SHA-512-256, nonce="5TsQWLVdgBdmrQ0XsxbDODV+57QdFR34I9HAbC/RVvkK", opaque="HRPCssKJSGjCrkzDg8OhwpzCiGPChXYjwrI2QmXDnsOS", charset=UTF-8, userhash=true',
  );
  const hidden = digestHeader(
    doe,
    { username: "Ja\u0308s\u00f8n Doe", password: "Secret, or not?" },
    { method: "GET", target: "/doe.json", count: 1, cnonce: "NTg6RKcb9boFIAS3KrFK9BGeh+iDa/sm6jUMp2wds69v" },
  );
  assert.match(hidden, /username="793263caabb707a56211940d90411ea4a575adeccb7e360aeb624ed06ece9b0b"/);
  assert.match(hidden, /response="3798d4131c277846293534c3edc11bd8a5e4cdcbff78b05db9d95eeb1cec68a5"/);
  assert.match(hidden, /userhash=true$/);
  const shown = digestHeader({ ...doe, hidesUser: false }, { username: "Jäsøn Doe", password: "" }, use);
  assert.match(shown, /^Digest username\*=UTF-8''J%C3%A4s%C3%B8n%20Doe, /);
});

test("challenges: several schemes in a header, quotes and commas in quotes; what can't be answered is named", () => {
  const read = challengeOf(
    String.raw`Negotiate, Basic realm="a, Digest b", NTLM TlRMTVNTUAAB==, Digest qop=auth , nonce = "n\"1" ,Realm="x\\y", stale=TRUE`,
  );
  assert.deepEqual([read.realm, read.nonce, read.isStale, read.algorithmText], ["x\\y", 'n"1', true, null]);
  for (const header of ["", 'Basic realm="x"', "Negotiate abc=="])
    assert.equal(readChallenge(header), "none");
  const problem = (header: string): string => {
    const found = readChallenge(header);
    return found !== "none" && "problem" in found ? found.problem : "";
  };
  assert.match(problem('Digest realm="r", nonce="n", qop="auth-int"'), /without `qop=auth`/);
  assert.match(problem('Digest realm="r", nonce="n"'), /without `qop=auth`/);
  assert.match(problem('Digest realm="r", nonce="n", qop=auth, algorithm=SHA-1'), /other than MD5/);
  assert.match(problem('Digest realm="r", qop=auth'), /without a realm or a nonce/);
  const began = process.cpuUsage();
  readChallenge(`Digest ${'a="'.repeat(30_000)}`);
  readChallenge(`Digest ${"a=b,".repeat(30_000)}${" ".repeat(30_000)}x`);
  assert(process.cpuUsage(began).user < 1_000_000);
});

/** A target that checks what RFC 7616, 3.4 says, with its own arithmetic. */
interface Strict {
  readonly target: Target;
  /** Answers with a new nonce, although the old one is right. */
  readonly over: Set<string>;
  readonly counts: Map<string, number>;
  refused: number;
}

interface Kind {
  readonly algorithm?: string;
  /** Every nonce is good for one request, and its end is not called stale. */
  readonly isOnce?: boolean;
  readonly answer?: (seen: Seen, response: ServerResponse) => boolean;
}

const USER = "dana";

async function strict(
  t: TestContext,
  { algorithm = "SHA-256", isOnce = false, answer }: Kind = {},
): Promise<Strict> {
  let made = 0;
  const own: Omit<Strict, "target"> = { over: new Set(), counts: new Map(), refused: 0 };
  const hash = (text: string): string =>
    createHash(/md5/i.test(algorithm) ? "md5" : /512/.test(algorithm) ? "sha512-256" : "sha256")
      .update(text, "utf8")
      .digest("hex");
  const ask = (response: ServerResponse, stale: boolean): void => {
    const nonce = `nonce-${(made += 1)}`;
    own.counts.set(nonce, 0);
    response
      .writeHead(401, {
        "www-authenticate": `Digest realm="a \\"realm\\"", qop="auth,auth-int", algorithm=${algorithm}, nonce="${nonce}", opaque="o"${stale ? ", stale=true" : ""}`,
      })
      .end();
  };
  const target = await startTarget(t, (seen, response) => {
    if (answer?.(seen, response) === true) return;
    const given = seen.headers.authorization ?? "";
    if (given === "") return ask(response, false);
    const read = Object.fromEntries(
      [...given.matchAll(/(\w+)=(?:"((?:[^"\\]|\\.)*)"|([^,]*))/g)].map(([, name, quoted, token]) => [
        name ?? "",
        (quoted ?? token ?? "").replaceAll(/\\(.)/g, "$1"),
      ]),
    ) as Record<string, string>;
    const { nonce = "", nc = "", cnonce = "", response: proof } = read;
    const last = own.counts.get(nonce);
    if (last === undefined || own.over.has(nonce)) return ask(response, !isOnce);
    assert.equal(read["uri"], seen.url);
    assert.equal(read["opaque"], "o");
    assert.equal(read["realm"], 'a "realm"');
    assert.ok(Number.parseInt(nc, 16) > last, "a count that was there before");
    own.counts.set(nonce, Number.parseInt(nc, 16));
    let key = hash(`${USER}:a "realm":${CANARY}`);
    if (algorithm.endsWith("-sess")) key = hash(`${key}:${nonce}:${cnonce}`);
    if (proof !== hash(`${key}:${nonce}:${nc}:${cnonce}:auth:${hash(`${seen.method}:${seen.url}`)}`)) {
      own.refused += 1;
      return ask(response, false);
    }
    if (isOnce) own.over.add(nonce);
    response.end(`hello ${seen.body}`);
  });
  return Object.assign(own, { target });
}

type Send = (request: OutboundRequest) => Promise<OutboundResponse>;

function sender(t: TestContext, origins: readonly string[], password = CANARY): Send {
  const gate = openGate({ allow: ["127.0.0.0/8"] });
  t.after(() => gate.close());
  const session = new Secret({ headers: {}, cookies: null, digest: { username: USER, password } });
  const target = openTarget(gate, origins, session);
  return async (request) => await target.send(request, new AbortController().signal);
}

for (const algorithm of ["MD5", "MD5-sess", "SHA-256", "SHA-256-sess", "SHA-512-256", "SHA-512-256-sess"])
  test(`${algorithm}: one question, then every request proves itself with the next count; the password is never sent`, async (t) => {
    const { target, counts } = await strict(t, { algorithm });
    const send = sender(t, [target.origin]);
    for (const request of [
      { method: "GET", url: "/a?b=%20c&d" },
      { method: "POST", url: "/write", body: "x" },
      { method: "PROPFIND", url: "/a" },
    ])
      assert.equal((await send(request)).text(), `hello ${request.body ?? ""}`);
    assert.deepEqual([...counts], [["nonce-1", 3]]);
    assert.equal(target.seen.length, 4);
    assert.ok(!JSON.stringify(target.seen).includes(CANARY));
    assert.ok(!JSON.stringify(target.seen).includes(btoa(CANARY).slice(0, 20)));
  });

test("a nonce that is over, by the target's word or not, is replaced; requests at once have nonces of their own", async (t) => {
  const one = await strict(t);
  const send = sender(t, [one.target.origin]);
  await send({ method: "GET", url: "/" });
  one.over.add("nonce-1");
  assert.equal((await send({ method: "POST", url: "/", body: "w" })).text(), "hello w");
  assert.deepEqual(
    [...one.counts],
    [
      ["nonce-1", 1],
      ["nonce-2", 1],
    ],
  );
  const each = await strict(t, { isOnce: true });
  const sendEach = sender(t, [each.target.origin]);
  for (let times = 0; times < 3; times += 1)
    assert.equal((await sendEach({ method: "GET", url: "/" })).status, 200);
  const many = await strict(t);
  const sendMany = sender(t, [many.target.origin]);
  for (let round = 0; round < 2; round += 1)
    await Promise.all(
      Array.from({ length: 8 }, async () =>
        assert.equal((await sendMany({ method: "GET", url: "/" })).status, 200),
      ),
    );
  assert.equal(many.target.seen.length, 8 + 16);
});

test("a wrong password is tried once a request, and ends as 401", async (t) => {
  const server = await strict(t);
  const send = sender(t, [server.target.origin], "wrong");
  assert.equal((await send({ method: "GET", url: "/" })).status, 401);
  assert.deepEqual([server.target.seen.length, server.refused], [2, 1]);
});

test("a write that was redirected is not sent again when the next page asks; another origin is told nothing", async (t) => {
  const elsewhere = await startTarget(
    t,
    (_seen, response) =>
      response.writeHead(401, { "www-authenticate": 'Digest realm="r", nonce="n", qop=auth' }).end(),
    "127.0.0.2",
  );
  const server = await strict(t, {
    answer: (seen, response) => {
      const to = { "/new": "/done", "/away": elsewhere.origin }[seen.url];
      if (to !== undefined) response.writeHead(303, { location: to }).end();
      return to !== undefined;
    },
  });
  const send = sender(t, [server.target.origin, elsewhere.origin]);
  const asked = (url: string): number => server.target.seen.filter((seen) => seen.url === url).length;
  const response = await send({ method: "POST", url: "/new", body: "x", redirectsMax: 5 });
  assert.deepEqual([response.status, asked("/new"), asked("/done")], [401, 1, 1]);
  assert.equal((await send({ method: "GET", url: "/new", redirectsMax: 5 })).status, 200);
  assert.equal((await send({ method: "GET", url: "/away", redirectsMax: 5 })).status, 401);
  assert.deepEqual(
    elsewhere.seen.map(({ headers }) => headers.authorization),
    [undefined],
  );
});

test("what can't be answered fails with the reason, and 401 without a digest stays one", async (t) => {
  let header = 'Digest realm="r", nonce="n", qop=auth-int';
  const target = await startTarget(t, (_seen, response) =>
    response.writeHead(401, { "www-authenticate": header }).end(),
  );
  const send = sender(t, [target.origin]);
  await assert.rejects(send({ method: "POST", url: "/", body: "x" }), (error: unknown) => {
    assert.ok(error instanceof OutboundError);
    assert.equal(error.failure, "refused");
    assert.match(error.message, /^127\.0\.0\.1:\d+ asks for a digest without `qop=auth`/);
    return true;
  });
  header = 'Basic realm="r"';
  assert.equal((await send({ method: "GET", url: "/" })).status, 401);
  assert.equal(target.seen.length, 2);
});

test("the login: a session to be sealed, `check` with a right and a wrong password, and its mistakes", async (t) => {
  const config = { username: "username", password: "password" };
  const server = await strict(t);
  const hosts = [server.target.origin];
  assert.deepEqual(await logIn(t, "digest", config, { hosts }), {
    headers: {},
    cookies: null,
    digest: { username: USER, password: CANARY },
  });
  assert.equal(server.target.seen.length, 0);
  const checked = { ...config, check: { request: { url: "/me" }, expect: { text: "hello" } } };
  await logIn(t, "digest", checked, { hosts });
  assert.equal(server.target.seen.length, 2);
  await assertLoginFails(
    logIn(t, "digest", checked, { hosts, credential: { username: USER, password: "wrong" } }),
    /^login check \(GET \/me\): expected status 200 to 299, got 401$/,
  );
  await assertLoginFails(
    logIn(t, "digest", config, { hosts, credential: {} }),
    /the fields username and password are empty/,
  );
  await assertLoginFails(
    logIn(t, "digest", config, { hosts, credential: { username: "a:b", password: "x" } }),
    /contains a colon, which HTTP Digest can't transmit/,
  );
  assert.match(
    findings("digest", { username: "usrname", password: "password" })[0] ?? "",
    /did you mean `username`/,
  );
});
