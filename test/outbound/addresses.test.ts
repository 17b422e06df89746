import assert from "node:assert/strict";
import { test } from "node:test";
import { addressRules } from "#outbound/address-rules.ts";
import { parseEgressAllow } from "#outbound/egress-allow.ts";
import { assertFails, openTestGate, policyFor, send, startTarget, startTcp } from "./targets.ts";

/** docs/decisions/0015: every way to write an address that is not public. */
const LITERALS = [
  "127.0.0.1",
  "localhost",
  "[::1]",
  "[::ffff:127.0.0.1]",
  "0x7f000001",
  "2130706433",
  "127.1",
  "0177.0.0.1",
  "0.0.0.0",
  "0",
  "[::]",
  "169.254.169.254",
  "0xa9fea9fe",
  "[::ffff:a9fe:a9fe]",
  "[fd00::1]",
  "[fd00:ec2::254]",
  "[fe80::1]",
  "[64:ff9b::7f00:1]",
  "[64:ff9b::a9fe:a9fe]",
  "[64:ff9b:1::1]",
  "100.64.0.1",
  "192.0.2.1",
  "198.51.100.1",
  "203.0.113.1",
  "198.18.0.1",
  "[2002:7f00:1::]",
  "10.0.0.1",
  "172.16.0.1",
  "192.168.0.1",
  "224.0.0.1",
  "240.0.0.1",
  "255.255.255.255",
  "192.0.0.1",
  "192.88.99.1",
  "168.63.129.16",
  "[::127.0.0.1]",
  "[2001::1]",
  "[2001:db8::1]",
  "[3fff::1]",
  "[ff02::1]",
  "[4000::1]",
  "[2606:4700::5efe:7f00:1]",
  "[2606:4700::200:5efe:7f00:1]",
];

test("every literal that is not a public address is refused before a connection is made", async (context) => {
  const trap = await startTcp(context, undefined, "127.0.0.1");
  const gate = openTestGate(context, { allow: [] });
  for (const literal of LITERALS) {
    const url = `http://${literal}:${trap.port}/`;
    const error = await assertFails(send(gate, url, policyFor([new URL(url).origin])), "refused");
    assert.match(error.message, /address/, literal);
  }
  assert.equal(trap.connections, 0);
});

test("public addresses are allowed", () => {
  const rules = addressRules([]);
  for (const address of ["8.8.8.8", "93.184.215.14", "2606:4700::1111", "2a00:1450:4001:81c::200e"]) {
    assert.equal(rules.explainRefusal(address, "name.example", 443), null, address);
  }
});

test("a name is refused when any of its addresses is not public", async (context) => {
  const trap = await startTcp(context);
  for (const answers of [
    ["127.0.0.1"],
    ["93.184.215.14", "127.0.0.1"],
    ["93.184.215.14", "::1"],
    ["127.0.0.1", "93.184.215.14"],
    ["::ffff:127.0.0.1"],
  ]) {
    const gate = openTestGate(context, { allow: [], resolve: () => Promise.resolve(answers) });
    const origin = `http://rebind.example:${trap.port}`;
    await assertFails(send(gate, origin, policyFor([origin])), "refused", /rebind\.example:\d+ refused/);
  }
  assert.equal(trap.connections, 0);
});

test("a name that answers differently the second time is refused then, however often it changes", async (context) => {
  const target = await startTarget(
    context,
    (_seen, response) => response.setHeader("connection", "close").end("hello"),
    "127.0.0.2",
  );
  const trap = await startTcp(context, undefined, "127.0.0.1", target.port);
  let lookups = 0;
  // 127.0.0.2 stands for a public address; the second answer of each pair is the one that is after loopback.
  const resolve = () => Promise.resolve(lookups++ % 2 === 0 ? ["127.0.0.2"] : ["127.0.0.1"]);
  const gate = openTestGate(context, { allow: ["127.0.0.2/32"], resolve });
  const origin = `http://rebind.example:${target.port}`;
  for (let round = 1; round <= 50; round++) {
    assert.equal((await send(gate, origin, policyFor([origin]))).text(), "hello");
    await assertFails(send(gate, origin, policyFor([origin])), "refused");
    assert.equal(
      lookups,
      2 * round,
      "one look-up a connect: the answer that was checked is the one that is dialled",
    );
  }
  assert.equal(trap.connections, 0);
});

test("names that nobody has are a failed connection, not a refusal", async (context) => {
  const gate = openTestGate(context, {
    allow: [],
    resolve: () => Promise.reject(Object.assign(new Error("x"), { code: "ENOTFOUND" })),
  });
  await assertFails(
    send(gate, "http://nobody.example/", policyFor(["http://nobody.example"])),
    "unreachable",
    /nobody\.example failed \(ENOTFOUND\)/,
  );
  const empty = openTestGate(context, { allow: [], resolve: () => Promise.resolve([]) });
  await assertFails(
    send(empty, "http://nobody.example/", policyFor(["http://nobody.example"])),
    "unreachable",
    /has no address/,
  );
});

test("the operator's networks open what they name and nothing else", () => {
  const rules = addressRules(["10.1.0.0/16", "fd00:1::/32", "127.0.0.0/8"]);
  const refusal = (address: string) => rules.explainRefusal(address, "erp.example", 443);
  for (const address of ["10.1.2.3", "fd00:1::5", "127.0.0.1"]) assert.equal(refusal(address), null, address);
  for (const address of [
    "10.2.0.1",
    "fd00:2::1",
    "::1",
    "::ffff:10.1.2.3",
    "::ffff:127.0.0.1",
    "64:ff9b::a01:203",
    "2002:a01:203::",
  ]) {
    assert.notEqual(refusal(address), null, address);
  }
});

test("disguised IPv4 is refused even when the operator allows everything", () => {
  const rules = addressRules(["0.0.0.0/0", "::/0"]);
  assert.equal(rules.explainRefusal("169.254.169.254", "h", 80), null);
  for (const address of [
    "::ffff:8.8.8.8",
    "64:ff9b::808:808",
    "64:ff9b:1::1",
    "2002:808:808::",
    "2001:0:1::1",
    "2606:4700::5efe:808:808",
  ]) {
    assert.notEqual(rules.explainRefusal(address, "h", 80), null, address);
  }
});

test("a host:port of the operator opens that port of that host, and for a name never link-local addresses", () => {
  const rules = addressRules([
    "localhost:4600",
    "127.0.0.1:4600",
    "ERP.internal:8443",
    "[fd00::7]:443",
    "169.254.10.10:80",
  ]);
  const allowed = [
    ["127.0.0.1", "localhost", 4600],
    ["::1", "localhost", 4600],
    ["127.0.0.1", "127.0.0.1", 4600],
    ["10.0.0.9", "erp.internal", 8443],
    ["fd00::7", "[fd00::7]", 443],
    ["169.254.10.10", "169.254.10.10", 80],
  ] as const;
  const refused = [
    ["127.0.0.1", "localhost", 4601],
    ["127.0.0.1", "other.example", 4600],
    ["127.0.0.2", "127.0.0.2", 4600],
    ["169.254.169.254", "erp.internal", 8443],
    ["168.63.129.16", "erp.internal", 8443],
    ["::ffff:10.0.0.9", "erp.internal", 8443],
    ["0.0.0.0", "erp.internal", 8443],
  ] as const;
  for (const [address, host, port] of allowed)
    assert.equal(rules.explainRefusal(address, host, port), null, `${address} for ${host}:${port}`);
  for (const [address, host, port] of refused)
    assert.notEqual(rules.explainRefusal(address, host, port), null, `${address} for ${host}:${port}`);
});

test("LATCHKEY_EGRESS_ALLOW is read with commas and white space", () => {
  assert.deepEqual(parseEgressAllow(" 127.0.0.0/8, localhost:4600\n[::1]:443 fd00::/8 "), {
    ok: true,
    items: ["127.0.0.0/8", "localhost:4600", "[::1]:443", "fd00::/8"],
  });
  assert.deepEqual(parseEgressAllow(""), { ok: true, items: [] });
});

test("every mistake in LATCHKEY_EGRESS_ALLOW is named with its remedy", () => {
  const wrong = {
    "10.0.0.5": /write 10\.0\.0\.5\/32, or 10\.0\.0\.5:443/,
    "::1": /write ::1\/128, or \[::1\]:443/,
    "10.0.0.5/8": /write 10\.0\.0\.0\/8/,
    "fd00::1/8": /write fd00::\/8/,
    "10.0.0.0/33": /prefix is too long/,
    "010.0.0.0/8": /write a network like/,
    "::ffff:10.0.0.0/104": /write the IPv4 network/,
    "[::ffff:10.0.0.1]:80": /write the IPv4 address/,
    "erp.internal": /erp\.internal:8443/,
    "erp.internal:0": /port/,
    "erp.internal:70000": /port/,
    "http://erp.internal:80": /write/,
    "*:80/": /write/,
  };
  const parsed = parseEgressAllow(Object.keys(wrong).join(","));
  assert.ok(!parsed.ok);
  assert.equal(parsed.problems.length, Object.keys(wrong).length);
  for (const [index, [item, remedy]] of Object.entries(wrong).entries()) {
    assert.ok(parsed.problems[index]?.startsWith(`"${item}"`));
    assert.match(parsed.problems[index] ?? "", remedy);
  }
});
