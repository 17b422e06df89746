// docs/reverse-proxy.md: whose word about a client's address counts, and what is made of what strangers write.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import {
  findClientAddress,
  isNeighbour,
  networkOf,
  parseTrustedProxies,
  type Network,
} from "#domain/client-address.ts";

function trusting(text: string): readonly Network[] {
  const parsed = parseTrustedProxies(text);
  assert.ok(parsed.ok, JSON.stringify(parsed));
  return parsed.networks;
}

const TRUSTED = trusting("10.0.0.0/8, fd00::/8 192.0.2.7/32");
const by = (forwardedFor: string, peer = "10.0.0.1"): string =>
  findClientAddress(peer, { "x-forwarded-for": forwardedFor }, TRUSTED);
const byForwarded = (forwarded: string, peer = "10.0.0.1"): string =>
  findClientAddress(peer, { forwarded }, TRUSTED);

test("nobody is believed unless listed, and who is not listed is the client", () => {
  const headers = { "x-forwarded-for": "203.0.113.9", forwarded: "for=203.0.113.9" };
  assert.equal(findClientAddress("10.0.0.1", headers, []), "10.0.0.1");
  assert.equal(findClientAddress("198.51.100.1", headers, TRUSTED), "198.51.100.1");
  assert.equal(findClientAddress("::ffff:198.51.100.1", headers, TRUSTED), "198.51.100.1");
  assert.equal(findClientAddress("fe80::1%eth0", headers, TRUSTED), "fe80::1");
  assert.equal(findClientAddress(undefined, headers, TRUSTED), "unknown");
});

describe("X-Forwarded-For", () => {
  const cases: readonly (readonly [header: string, client: string])[] = [
    ["203.0.113.9", "203.0.113.9"],
    ["1.1.1.1, 203.0.113.9", "203.0.113.9"],
    ["1.1.1.1,203.0.113.9,10.2.3.4", "203.0.113.9"],
    ["1.1.1.1, 203.0.113.9, 10.2.3.4 , fd00::5,192.0.2.7", "203.0.113.9"],
    // All are proxies: the first of them has asked.
    ["10.9.9.9, 10.2.3.4", "10.9.9.9"],
    ["203.0.113.9:4711", "203.0.113.9"],
    ["[2001:DB8:0:0::1]:4711", "2001:db8::1"],
    ["[2001:db8::1]", "2001:db8::1"],
    ["2001:db8::1", "2001:db8::1"],
    ["::ffff:203.0.113.9", "203.0.113.9"],
    // A proxy under the address that dual-stack sockets give it.
    ["203.0.113.9, ::ffff:10.2.3.4", "203.0.113.9"],
    // What can't be read counts as the last trusted hop.
    ["", "10.0.0.1"],
    [",", "10.0.0.1"],
    ["203.0.113.9,", "10.0.0.1"],
    ["203.0.113.9, unknown", "10.0.0.1"],
    ["203.0.113.9, _hidden, 10.2.3.4", "10.2.3.4"],
    ["203.0.113.9 10.2.3.4", "10.0.0.1"],
    ["203.0.113.9, 010.0.0.1", "10.0.0.1"],
    ["203.0.113.9, 0x0a.0.0.1", "10.0.0.1"],
    ["203.0.113.9, 10.1", "10.0.0.1"],
    ["203.0.113.9, 167772161", "10.0.0.1"],
    ["203.0.113.9, fe80::1%eth0", "10.0.0.1"],
    ["203.0.113.9, [10.2.3.4]", "10.0.0.1"],
    ["203.0.113.9, http://10.2.3.4", "10.0.0.1"],
    ["203.0.113.9, 10.2.3.4\u0000", "10.0.0.1"],
    ["203.0.113.9, 256.0.0.1", "10.0.0.1"],
  ];
  for (const [header, client] of cases)
    test(`${JSON.stringify(header)} is ${client}`, () => assert.equal(by(header), client));

  test("several headers are one list", () => {
    const headers = { "x-forwarded-for": ["1.1.1.1", "203.0.113.9", "10.2.3.4"] };
    assert.equal(findClientAddress("10.0.0.1", headers, TRUSTED), "203.0.113.9");
  });

  test("a Forwarded that the client has sent counts for nothing beside it", () => {
    const headers = { "x-forwarded-for": "203.0.113.9", forwarded: "for=1.1.1.1" };
    assert.equal(findClientAddress("10.0.0.1", headers, TRUSTED), "203.0.113.9");
  });

  test("a list of proxies without an end is not followed", () => {
    const looked = by(`203.0.113.9${",10.1.1.1".repeat(2_000)}`);
    assert.equal(looked, "10.1.1.1");
  });
});

describe("Forwarded", () => {
  const cases: readonly (readonly [header: string, client: string])[] = [
    ["for=203.0.113.9", "203.0.113.9"],
    ["For=203.0.113.9;proto=https;by=10.0.0.1;host=a.example", "203.0.113.9"],
    ['proto=https ; host="a,b;c" ; for=203.0.113.9', "203.0.113.9"],
    ["for=1.1.1.1, for=203.0.113.9", "203.0.113.9"],
    ["for=1.1.1.1, for=203.0.113.9, for=10.2.3.4", "203.0.113.9"],
    ['for="203.0.113.9:4711"', "203.0.113.9"],
    ['for="[2001:db8::1]"', "2001:db8::1"],
    ['for="[2001:db8::1]:_port"', "2001:db8::1"],
    ['for="\\[2001:db8::1\\]"', "2001:db8::1"],
    // A client's quotes reach nowhere.
    ['for="1.1.1.1, for=203.0.113.9', "203.0.113.9"],
    ['for="\\", for=203.0.113.9', "203.0.113.9"],
    ['for=1.1.1.1;x=", for=203.0.113.9, for="[fd00::5]"', "203.0.113.9"],
    // Obfuscated identifiers name no address: the last trusted hop.
    ["for=_gazonk", "10.0.0.1"],
    ['for=203.0.113.9, for="_SEVKISEK", for=10.2.3.4', "10.2.3.4"],
    ["for=203.0.113.9, for=unknown", "10.0.0.1"],
    ["", "10.0.0.1"],
    ["203.0.113.9", "10.0.0.1"],
    ["for=", "10.0.0.1"],
    ["proto=https", "10.0.0.1"],
    ["for=203.0.113.9, proto=https", "10.0.0.1"],
    ["for=1.1.1.1;for=203.0.113.9", "10.0.0.1"],
    ["for=[2001:db8::1]", "10.0.0.1"],
    ['for="203.0.113.9', "10.0.0.1"],
  ];
  for (const [header, client] of cases)
    test(`${header} is ${client}`, () => assert.equal(byForwarded(header), client));
});

test("no header of any kind makes an untrusted peer another, and none throws", () => {
  const parts = [
    "for=",
    '"',
    "\\",
    ",",
    ";",
    "10.2.3.4",
    "203.0.113.9",
    "[",
    "]",
    "::1",
    "%",
    " ",
    "_x",
    "=",
  ];
  let seed = 7;
  const next = (): number => (seed = (Math.imul(seed, 1_103_515_245) + 12_345) >>> 0) / 2 ** 32;
  for (let tries = 0; tries < 5_000; tries++) {
    const text = Array.from({ length: 12 }, () => parts[Math.floor(next() * parts.length)]).join("");
    for (const headers of [{ "x-forwarded-for": text }, { forwarded: text }]) {
      assert.equal(findClientAddress("198.51.100.1", headers, TRUSTED), "198.51.100.1");
      // What a trusted proxy has appended decides, whatever stands before it.
      const [name = ""] = Object.keys(headers);
      const own = name === "forwarded" ? ", for=198.51.100.77" : ", 198.51.100.77";
      assert.equal(findClientAddress("10.0.0.1", { [name]: text + own }, TRUSTED), "198.51.100.77", text);
    }
  }
});

test("clients are counted by their network: IPv6 by /64", () => {
  assert.equal(networkOf("203.0.113.9"), "203.0.113.9");
  assert.equal(networkOf("2001:db8:1:2:3:4:5:6"), "2001:db8:1:2::/64");
  assert.equal(networkOf("2001:db8:1:2::"), "2001:db8:1:2::/64");
  assert.notEqual(networkOf("2001:db8:1:3::1"), networkOf("2001:db8:1:2::1"));
  assert.equal(networkOf("::ffff:203.0.113.9"), "::ffff:203.0.113.9");
  assert.equal(networkOf("unknown"), "unknown");
});

test("loopback and proxies are neighbours, others are not", () => {
  for (const peer of [
    "127.0.0.1",
    "127.9.9.9",
    "::1",
    "::ffff:127.0.0.1",
    "10.1.1.1",
    "::ffff:10.1.1.1",
    "fd00::9",
  ])
    assert.equal(isNeighbour(peer, TRUSTED), true, peer);
  for (const peer of ["203.0.113.9", "192.0.2.8", "2001:db8::1", "", "::ffff:203.0.113.9"])
    assert.equal(isNeighbour(peer, TRUSTED), false, peer);
});

describe("LATCHKEY_TRUSTED_PROXIES", () => {
  const refused: readonly (readonly [item: string, reason: RegExp])[] = [
    ["*", /"\*" would let every caller choose its own address/],
    ["0.0.0.0/0", /so wide that it includes strangers/],
    ["::/0", /so wide that it includes strangers/],
    ["128.0.0.0/1", /so wide/],
    ["2000::/3", /so wide/],
    ["10.0.0.1", /write 10\.0\.0\.1\/32/],
    ["2001:DB8::1", /write 2001:db8::1\/128/],
    ["10.0.0.1/8", /has host bits set; write 10\.0\.0\.0\/8/],
    ["10.0.0.0/33", /too long/],
    ["::ffff:10.0.0.0/104", /write the IPv4 network/],
    ["proxy.internal", /write one like/],
    ["10.0.0.0/", /write one like/],
    ["010.0.0.0/8", /write one like/],
  ];
  for (const [item, reason] of refused)
    test(`refuses ${item}, with a reason`, () => {
      const parsed = parseTrustedProxies(`10.0.0.0/8, ${item}`);
      assert.ok(!parsed.ok);
      assert.equal(parsed.problems.length, 1);
      assert.match(parsed.problems[0] ?? "", reason);
    });

  test("takes networks of both kinds; empty is nobody", () => {
    assert.deepEqual(trusting(""), []);
    assert.equal(trusting("10.0.0.0/8,\n172.16.0.0/12 fc00::/7 , 192.0.2.1/32").length, 4);
  });
});
