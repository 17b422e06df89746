// What a password's hash is worth, and that each check gives its place back.
import assert from "node:assert/strict";
import { test } from "node:test";
import { hashPassword, isOutdatedHash, Passwords, verifyPassword } from "#lib/password.ts";
import { Secret } from "#lib/secret.ts";
import { argon2Hash } from "./argon2-hash.ts";

/** A hash that takes no time. */
const cheapHash = (password: string): string => argon2Hash(password, { memory: 64, passes: 1 });
const HASH = cheapHash("right");
const KEY = new Secret(Buffer.alloc(32, 7));

test("a hash is worth nothing without the key that it was made with, and says that it has one", async () => {
  const hash = await hashPassword("right", KEY);
  assert.match(hash, /^\$argon2id\$v=19\$m=19456,t=2,p=1,keyid=/);
  assert.equal(await verifyPassword("right", hash, KEY), true);
  assert.equal(await verifyPassword("wrong", hash, KEY), false);
  assert.equal(await verifyPassword("right", hash, new Secret(Buffer.alloc(32, 8))), false);
  // As it would be taken if the key were left out.
  assert.equal(await verifyPassword("right", hash.replace(/,keyid=[^$]+/, ""), KEY), false);
  assert.equal(await verifyPassword("right", hash.replace(/keyid=[^$]+/, "keyid=b3RoZXI"), KEY), false);
  assert.equal(isOutdatedHash(hash), false);
});

test("a hash from before there was a key is right, and is renewed", async () => {
  assert.equal(await verifyPassword("right", HASH, KEY), true);
  assert.equal(isOutdatedHash(HASH), true);
  assert.equal(isOutdatedHash((await hashPassword("right", KEY)).replace(/,keyid=[^$]+/, "")), true);
});

test("a place is free again when its work is done, whatever came of it", async () => {
  const passwords = new Passwords(KEY);
  for (let round = 0; round < 3; round++) {
    const asked = Array.from({ length: 40 }, (_, index) =>
      passwords.verify(index % 2 === 0 ? "right" : "wrong", HASH, { network: `network-${index}` }),
    );
    assert.equal((await Promise.all(asked)).filter(Boolean).length, 20);
  }
  assert.equal(passwords.isBusy, false);
});
