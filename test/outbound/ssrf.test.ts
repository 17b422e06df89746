import assert from "node:assert/strict";
import { BlockList } from "node:net";
import { test } from "node:test";
import { addressRules } from "#outbound/address-rules.ts";
import { ADDRESS_CLASSES, LITERAL_HOSTS, NAMED_HOSTS, SPECIAL_V4, SPECIAL_V6 } from "./ssrf-corpus.ts";
import { assertFails, openTestGate, policyFor, send, startTarget, startTcp } from "./targets.ts";

const PUBLIC = ["93.184.215.14", "2606:4700::1111"];
const REDIRECTS = [301, 302, 303, 307, 308];

/** A small generator of numbers that gives the same ones every time. */
function numbers(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

test("the corpus has at least 86 hosts and 40 classes", () => {
  assert.ok(new Set([...LITERAL_HOSTS, ...NAMED_HOSTS.map(([name]) => name)]).size >= 86);
  assert.ok(Object.keys(ADDRESS_CLASSES).length >= 40);
});

test("the trap counts: what the gate may dial is seen there, by every kind of address", async (context) => {
  const trap = await startTcp(context, undefined, "::");
  const names = {
    "rebind.example": ["127.0.0.1"],
    "six.example": ["::1"],
    "both.example": ["127.0.0.1", "::1"],
  };
  const gate = openTestGate(context, {
    allow: ["127.0.0.0/8", "::1/128"],
    resolve: (name) => Promise.resolve(names[name as keyof typeof names] ?? []),
  });
  const hosts = ["127.0.0.1", "127.0.0.9", "[::1]", "2130706433", ...Object.keys(names)];
  for (const [index, host] of hosts.entries()) {
    const origin = new URL(`http://${host}:${trap.port}`).origin;
    await assertFails(send(gate, origin, policyFor([origin])), "connection");
    assert.ok(trap.connections > index, host);
  }
});

test("no spelling of a private address is dialled, even where its origin is in the host list", async (context) => {
  const trap = await startTcp(context, undefined, "::");
  const addresses = new Map(
    NAMED_HOSTS.map(([name, address]) => [new URL(`http://${name}`).hostname, address]),
  );
  const gate = openTestGate(context, {
    allow: [],
    resolve: (name) => Promise.resolve([addresses.get(name) ?? assert.fail(`${name} was looked up`)]),
  });
  for (const host of [...LITERAL_HOSTS, ...NAMED_HOSTS.map(([name]) => name)]) {
    for (const scheme of ["http", "https"]) {
      const url = `${scheme}://${host}:${trap.port}/latest/meta-data/`;
      assert.ok(URL.canParse(url), `${host} is a host`);
      const error = await assertFails(send(gate, url, policyFor([new URL(url).origin])), "refused");
      assert.match(error.message, /address/, host);
    }
  }
  assert.equal(trap.connections, 0);
});

test("what URL parsers quarrel about is no way to another host", async (context) => {
  const trap = await startTcp(context, undefined, "::");
  const target = await startTarget(context, (_seen, response) => response.end("target"));
  const gate = openTestGate(context, { allow: ["127.0.0.1/32"] });
  const policy = policyFor([target.origin]);
  const here = target.origin.slice("http://".length);
  const there = `[::1]:${trap.port}`;
  const asked = [
    `http://${here}@${there}/`,
    `http://${here}#@${there}/`,
    `http://${here}?@${there}/`,
    `http://${here}\\@${there}/`,
    `http://${there}\\@${here}/`,
    `http://${there}#@${here}/`,
    `http://u:p@${here}/`,
    `http:/\\${there}/`,
    `http:\\\\${there}\\${here}`,
    `http:${there}/`,
    `http://${here}%2f@${there}/`,
    `http://${there}%23@${here}/`,
    `http://\t${there}/`,
    `ht\ntp://${there}/`,
    `//${there}/`,
    `/\\${there}/`,
    `///${there}/${here}`,
    `ftp://${there}/`,
    `file://${there}/etc/passwd`,
    `data:text/plain,${there}`,
    `blob:${target.origin}/1`,
    `javascript:fetch("http://${there}")`,
    `ws://${there}/`,
    `gopher://${there}/_x`,
    `unix:/run/docker.sock`,
  ];
  let answered = 0;
  for (const text of asked) {
    const url = URL.parse(text, target.origin);
    if (url === null) continue;
    const outcome = await send(gate, url.href, policy).then(
      (response) => response.text(),
      (error: unknown) => error,
    );
    if (outcome === "target") answered++;
    else assert.match(String(outcome), /GateError: .* refused: /, text);
  }
  // A fragment, a query, and two paths: those requests are the target's, and it has got them.
  assert.equal(answered, 4);
  assert.equal(target.seen.length, 4);
  assert.equal(trap.connections, 0);
});

test("no address of any class is dialled for a name, alone or beside public ones", async (context) => {
  const trap = await startTcp(context, undefined, "::");
  let answers: readonly string[] = [];
  const gate = openTestGate(context, { allow: [], resolve: () => Promise.resolve(answers) });
  const origin = `http://name.example:${trap.port}`;
  for (const [name, addresses] of Object.entries(ADDRESS_CLASSES)) {
    for (const address of addresses) {
      for (answers of [
        [address],
        [...PUBLIC, address],
        [address, ...PUBLIC],
        [...PUBLIC, address, ...PUBLIC],
      ]) {
        await assertFails(send(gate, origin, policyFor([origin])), "refused", /name\.example:\d+ refused/);
      }
      assert.equal(trap.connections, 0, name);
    }
  }
});

test("a second classifier agrees on 40,000 addresses: what it calls special is never public for us", () => {
  const special = new BlockList();
  for (const [network, prefix] of SPECIAL_V4) special.addSubnet(network, prefix, "ipv4");
  const special6 = new BlockList();
  for (const [network, prefix] of SPECIAL_V6) special6.addSubnet(network, prefix, "ipv6");
  const global6 = new BlockList();
  global6.addSubnet("2000::", 3, "ipv6");
  const rules = addressRules([]);
  const random = numbers(7);
  const part = (most: number): number => Math.floor(random() * most);
  let allowed = 0;
  for (let round = 0; round < 20_000; round++) {
    // Every second one lies in or just beside a special network.
    const [near = "0.0.0.0"] = SPECIAL_V4[part(SPECIAL_V4.length)] ?? [];
    const [a = 0, b = 0, c = 0] = near.split(".").map(Number);
    const v4 =
      round % 2 === 0
        ? [part(256), part(256), part(256), part(256)].join(".")
        : [a, (b + part(3) + 255) % 256, (c + part(3) + 255) % 256, part(256)].join(".");
    const isFree = rules.explainRefusal(v4, "name.example", 443) === null;
    assert.equal(isFree, !special.check(v4, "ipv4"), v4);
    const [six = "2000::"] = SPECIAL_V6[part(SPECIAL_V6.length)] ?? [];
    const head = round % 2 === 0 ? part(0x1_0000).toString(16) : six.split(":")[0];
    const tail = Array.from({ length: 7 }, () => part(0x1_0000).toString(16)).join(":");
    const v6 = `${head}:${tail}`;
    const isFree6 = rules.explainRefusal(v6, "name.example", 443) === null;
    assert.equal(isFree6, global6.check(v6, "ipv6") && !special6.check(v6, "ipv6"), v6);
    allowed += Number(isFree) + Number(isFree6);
  }
  assert.ok(allowed > 10_000, "not everything is refused");
});

test("a redirect of any status to any place of the corpus is not followed", async (context) => {
  const trap = await startTcp(context, undefined, "::");
  const target = await startTarget(context, (seen, response) => {
    const { searchParams } = new URL(seen.url, "http://target");
    const location = Buffer.from(searchParams.get("to") ?? "").toString("latin1");
    response.writeHead(Number(searchParams.get("status")), { location }).end();
  });
  const addresses = new Map(
    NAMED_HOSTS.map(([name, address]) => [new URL(`http://${name}`).hostname, address]),
  );
  const gate = openTestGate(context, {
    allow: [`127.0.0.1:${target.port}`],
    resolve: (name) => Promise.resolve([addresses.get(name) ?? assert.fail(`${name} was looked up`)]),
  });
  const places = [...LITERAL_HOSTS, ...NAMED_HOSTS.map(([name]) => name)].flatMap((host) => [
    `http://${host}:${trap.port}/`,
    `//${host}:${trap.port}/`,
  ]);
  for (const status of REDIRECTS) {
    for (const place of places) {
      const url = `${target.origin}/?status=${status}&to=${encodeURIComponent(place)}`;
      await assertFails(send(gate, url, policyFor([target.origin])), "redirect_outside");
      // The worst case: the host list names the place.
      const listed = [target.origin, new URL(place, target.origin).origin];
      await assertFails(send(gate, url, policyFor(listed)), "redirect_outside", /address/);
    }
  }
  assert.equal(trap.connections, 0);
});

test("1,000 tries with a name server that changes its answers: nothing but the checked address is dialled", async (context) => {
  // 127.0.0.2 stands for a public address; all the others are what an attacker's name points to.
  const target = await startTarget(
    context,
    (seen, response) => {
      response.setHeader("connection", "close");
      if (seen.url === "/hop") response.writeHead(302, { location: `http://second.example:${target.port}/` });
      response.end("hello");
    },
    "127.0.0.2",
  );
  const traps = [
    await startTcp(context, undefined, "127.0.0.1", target.port),
    await startTcp(context, undefined, "::1", target.port),
  ];
  const good = ["127.0.0.2"];
  const answersOfAttacker = [
    good,
    good,
    good,
    ["127.0.0.1"],
    ["::1"],
    ["127.0.0.2", "127.0.0.1"],
    ["127.0.0.2", "::1"],
    ["::1", "127.0.0.2"],
    ["::ffff:127.0.0.1"],
    ["127.0.0.2", "::ffff:7f00:1"],
  ];
  const random = numbers(11);
  let given: (readonly string[])[] = [];
  const gate = openTestGate(context, {
    allow: ["127.0.0.2/32"],
    resolve: async () => {
      const answer = answersOfAttacker[Math.floor(random() * answersOfAttacker.length)] ?? good;
      given.push(answer);
      return await Promise.resolve(answer);
    },
  });
  const origins = ["first", "second"].map((name) => `http://${name}.example:${target.port}`);
  const counts = { arrived: 0, refused: 0 };
  for (let round = 0; round < 1_000; round++) {
    given = [];
    const path = round % 2 === 0 ? "/" : "/hop";
    const outcome = await send(gate, `${origins[0]}${path}`, policyFor(origins)).then(
      () => "arrived" as const,
      (error: { failure?: string }) => {
        // What was sent to the first is no request that nobody has got.
        assert.equal(error.failure, given.length === 1 ? "refused" : "redirect_outside");
        return "refused" as const;
      },
    );
    // One look-up a connect: the request succeeds exactly when each answer that it was given was good.
    assert.equal(outcome, given.every((answer) => answer === good) ? "arrived" : "refused");
    assert.ok(given.length <= (path === "/" ? 1 : 2));
    counts[outcome]++;
  }
  assert.ok(counts.arrived > 100 && counts.refused > 100, JSON.stringify(counts));
  assert.deepEqual(
    traps.map(({ connections }) => connections),
    [0, 0],
  );
});
