import assert from "node:assert/strict";
import type { KeyObject } from "node:crypto";
import { suite, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import fc from "fast-check";
import { encodeBinding, SEAL_PURPOSES, type SealBinding } from "#vault/binding.ts";
import { generateMasterKey, readMasterKey } from "#vault/master-key.ts";
import { openVault, VaultError, type Keyring } from "#vault/vault.ts";

const binding: SealBinding = {
  purpose: "credential",
  accountId: "acct_a",
  rowId: "cred_a",
  strategyId: "strat_a",
};

function freshVault(): Keyring {
  const { fileText } = generateMasterKey();
  const { publicJwk, privateKeys } = readMasterKey(fileText);
  return openVault({ publicKey: publicJwk, privateKeys });
}

const text = fc.string({ unit: "grapheme", maxLength: 40 });
const bindings = fc.record({
  purpose: fc.constantFrom(...SEAL_PURPOSES),
  accountId: text,
  rowId: text,
  strategyId: text,
  version: fc.option(text, { nil: undefined }),
});

suite("sealing", () => {
  test("whatever is sealed opens again, to the byte, and only in its own place", async () => {
    const vault = freshVault();
    await fc.assert(
      fc.asyncProperty(
        fc.uint8Array({ maxLength: 2_000 }),
        bindings,
        bindings,
        async (plaintext, here, there) => {
          const { sealed } = await vault.seal(plaintext, here);
          assert.deepEqual(Buffer.from(await vault.open(sealed, here)), Buffer.from(plaintext));
          if (encodeBinding(here).equals(encodeBinding(there))) return;
          await assert.rejects(vault.open(sealed, there), VaultError);
        },
      ),
      { numRuns: 150 },
    );
  });

  for (const size of [0, 1, 65_536, 1_000_000]) {
    test(`${size} bytes`, async () => {
      const vault = freshVault();
      const plaintext = Buffer.alloc(size, "\u0000\u00ff");
      const opened = await vault.open((await vault.seal(plaintext, binding)).sealed, binding);
      assert.ok(Buffer.from(opened).equals(plaintext));
    });
  }

  test("the same value sealed twice has nothing in common, and nothing of it shows", async () => {
    const vault = freshVault();
    const canary = Buffer.from("canary-canary-canary-canary");
    const [{ sealed: a }, { sealed: b }] = [
      await vault.seal(canary, binding),
      await vault.seal(canary, binding),
    ];
    const read = (sealed: Uint8Array) =>
      JSON.parse(Buffer.from(sealed).toString("utf8")) as Record<string, string>;
    for (const part of ["protected", "encrypted_key", "iv", "ciphertext", "tag"]) {
      assert.notEqual(read(a)[part], read(b)[part], part);
    }
    for (const spelling of ["utf8", "hex", "base64", "base64url"] as const) {
      assert.ok(!Buffer.from(a).toString("utf8").includes(canary.toString(spelling)));
    }
    assert.equal(canary.toString(), "canary-canary-canary-canary");
  });

  test("a sealed value is a JWE of RFC 7516 that names its key", async () => {
    const vault = freshVault();
    const { sealed, kid } = await vault.seal(Buffer.from("x"), binding);
    const jwe = JSON.parse(Buffer.from(sealed).toString("utf8")) as { protected: string };
    assert.equal(kid, vault.kid);
    const header = JSON.parse(Buffer.from(jwe.protected, "base64url").toString("utf8")) as Record<
      string,
      unknown
    >;
    assert.equal(header["alg"], "ECDH-ES+A256KW");
    assert.equal(header["enc"], "A256GCM");
    assert.equal(header["kid"], vault.kid);
    assert.equal((header["epk"] as { crv: string }).crv, "X25519");
  });

  test("a process without the private key seals and says clearly that it can't open", async () => {
    const { fileText, publicJwk, kid } = generateMasterKey();
    const sealer = openVault({ publicKey: publicJwk });
    assert.equal(sealer.canOpen, false);
    assert.equal(sealer.kid, kid);
    const { sealed } = await sealer.seal(Buffer.from("secret"), binding);
    await assert.rejects(sealer.open(sealed, binding), (error) => {
      assert.ok(error instanceof VaultError);
      assert.equal(error.code, "no_private_key");
      assert.match(error.message, /no master key/);
      return true;
    });
    const opener = openVault({ publicKey: publicJwk, privateKeys: readMasterKey(fileText).privateKeys });
    assert.equal(opener.canOpen, true);
    assert.equal(Buffer.from(await opener.open(sealed, binding)).toString(), "secret");
  });

  test("after a rotation the keys before still open, and a vault of another key never does", async () => {
    const [before, after] = [generateMasterKey(), generateMasterKey()];
    const { sealed } = await openVault({ publicKey: before.publicJwk }).seal(Buffer.from("secret"), binding);
    const keysOf = (file: string) => (JSON.parse(file) as { keys: object[] }).keys;
    const both = readMasterKey(
      JSON.stringify({ keys: [...keysOf(after.fileText), ...keysOf(before.fileText)], primary: after.kid }),
    );
    assert.equal(both.kid, after.kid);
    const rotated = openVault({ publicKey: both.publicJwk, privateKeys: both.privateKeys });
    assert.equal(rotated.kid, after.kid);
    assert.equal(Buffer.from(await rotated.open(sealed, binding)).toString(), "secret");

    const { privateKeys } = readMasterKey(after.fileText);
    const stranger = openVault({ publicKey: before.publicJwk, privateKeys });
    assert.equal(stranger.canOpen, false);
    await assert.rejects(stranger.open(sealed, binding), { code: "cannot_open" });
  });
});

suite("a vault whose keys change", () => {
  const [first, second] = [generateMasterKey(), generateMasterKey()];
  const [firstKeys, secondKeys] = [first, second].map(({ fileText }) => readMasterKey(fileText).privateKeys);

  test("seals with the promoted key at once, names the key of each value, and opens both", async () => {
    const vault = openVault({
      publicKey: first.publicJwk,
      privateKeys: new Map([...(firstKeys ?? []), ...(secondKeys ?? [])]),
    });
    const before = await vault.seal(Buffer.from("before"), binding);
    vault.sealWith(second.publicJwk);
    const after = await vault.seal(Buffer.from("after"), binding);
    assert.deepEqual([before.kid, after.kid, vault.kid], [first.kid, second.kid, second.kid]);
    for (const { sealed, kid } of [before, after]) {
      const opened = Buffer.from(await vault.open(sealed, binding)).toString();
      assert.equal(opened, kid === first.kid ? "before" : "after");
    }
  });

  test("looks for an unknown key where its keys come from, and not again at once", async () => {
    let looks = 0;
    let there: ReadonlyMap<string, KeyObject> = firstKeys ?? new Map();
    const vault = openVault({
      publicKey: first.publicJwk,
      privateKeys: firstKeys,
      reread: async () => (looks++, there),
    });
    const { sealed } = await openVault({ publicKey: second.publicJwk }).seal(Buffer.from("new"), binding);
    await assert.rejects(vault.open(sealed, binding), { code: "cannot_open" });
    there = secondKeys ?? new Map();
    await assert.rejects(vault.open(sealed, binding), { code: "cannot_open" });
    assert.equal(looks, 1);
    assert.equal(vault.holds(second.kid), false);
    await sleep(1_100);
    assert.equal(Buffer.from(await vault.open(sealed, binding)).toString(), "new");
    assert.deepEqual([looks, vault.holds(second.kid), vault.holds(first.kid)], [2, true, true]);
  });

  test("finds a new key for everyone who asks at the same time, also just after the search for another", async () => {
    let there: ReadonlyMap<string, KeyObject> = firstKeys ?? new Map();
    const looks: number[] = [];
    const reread = async () => {
      looks.push(performance.now());
      await sleep(20);
      return there;
    };
    const vault = openVault({ publicKey: first.publicJwk, privateKeys: firstKeys, reread });
    assert.equal(await vault.learn("another"), false);
    there = new Map([...(firstKeys ?? []), ...(secondKeys ?? [])]);
    const { sealed } = await openVault({ publicKey: second.publicJwk }).seal(Buffer.from("new"), binding);
    const opened = await Promise.all([1, 2, 3].map(async () => await vault.open(sealed, binding)));
    assert.deepEqual(
      opened.map((bytes) => Buffer.from(bytes).toString()),
      ["new", "new", "new"],
    );
    assert.equal(looks.length, 2);
    assert.ok((looks[1] ?? 0) - (looks[0] ?? 0) > 990, "and the source is read once a second at most");
  });

  test("a source that can't be read is an error for who asks, and no way to open", async () => {
    const reread = async () => {
      throw new Error("gone");
    };
    const vault = openVault({ publicKey: first.publicJwk, privateKeys: firstKeys, reread });
    await assert.rejects(vault.learn(second.kid), /gone/);
    const { sealed } = await openVault({ publicKey: second.publicJwk }).seal(Buffer.from("new"), binding);
    await assert.rejects(vault.open(sealed, binding), { code: "cannot_open" });
  });
});

suite("the binding", () => {
  test("no two bindings have the same bytes", () => {
    fc.assert(
      fc.property(bindings, bindings, (a, b) => {
        const same =
          a.purpose === b.purpose &&
          a.accountId === b.accountId &&
          a.rowId === b.rowId &&
          a.strategyId === b.strategyId &&
          a.version === b.version;
        assert.equal(encodeBinding(a).equals(encodeBinding(b)), same);
      }),
    );
    const at = (accountId: string, rowId: string) =>
      encodeBinding({ ...binding, accountId, rowId }).toString("hex");
    assert.notEqual(at("ab", "c"), at("a", "bc"));
    assert.notEqual(at("", "abc"), at("abc", ""));
  });

  test("its bytes are the documented ones", () => {
    const hex = encodeBinding({ purpose: "sentinel", accountId: "", rowId: "é", strategyId: "s" }).toString(
      "hex",
    );
    assert.equal(
      hex,
      "00000002763100000008" + "73656e74696e656c" + "00000000" + "00000002c3a9" + "0000000173",
    );
  });

  test("the bytes with a version are the documented ones, and none of another form", () => {
    const at = (version: string | undefined) =>
      encodeBinding({ purpose: "sentinel", accountId: "", rowId: "r", strategyId: "", version }).toString(
        "hex",
      );
    const place = "0000000873656e74696e656c" + "00000000" + "0000000172" + "00000000";
    assert.equal(at("1/2"), `000000027632${place}00000003312f32`);
    assert.equal(at(""), `000000027632${place}00000000`);
    assert.equal(at(undefined), `000000027631${place}`);
  });

  test("a lone surrogate is a bug of ours and never sealed", () => {
    assert.throws(() => encodeBinding({ ...binding, rowId: "\ud800" }), /well-formed/);
  });
});
