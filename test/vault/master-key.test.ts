import assert from "node:assert/strict";
import { generateKeyPairSync } from "node:crypto";
import { suite, test } from "node:test";
import { inspect } from "node:util";
import { calculateJwkThumbprint } from "jose";
import { generateSigningKey } from "#lib/signing.ts";
import { generateMasterKey, MasterKeyError, readMasterKey, readPublicKey } from "#vault/master-key.ts";

interface KeyFile {
  keys: Record<string, string>[];
  primary: string;
}
const fresh = (): KeyFile => JSON.parse(generateMasterKey().fileText) as KeyFile;
const first = (file: KeyFile): Record<string, string> => file.keys[0] ?? {};

/** A file with its first key changed. */
function changed(change: (key: Record<string, string>) => Record<string, string | undefined>): string {
  const file = fresh();
  return JSON.stringify({ ...file, keys: [change(first(file))] });
}

suite("the master key's file", () => {
  test("no key's id begins with a hyphen, which the command line would take for an option", () => {
    // One in 64 of all thumbprints does: that none of 1,000 would is no accident.
    const kids = Array.from({ length: 1_000 }, () => generateMasterKey().kid);
    assert.deepEqual(
      kids.filter((kid) => kid.startsWith("-")),
      [],
    );
  });

  test("what is generated is read again", async () => {
    const { fileText, publicJwk, kid } = generateMasterKey();
    const read = readMasterKey(`\n${fileText}\n`);
    assert.equal(read.kid, kid);
    assert.equal(read.publicJwk, publicJwk);
    assert.deepEqual([...read.privateKeys.keys()], [kid]);
    assert.equal(readPublicKey(publicJwk).kid, kid);
    assert.ok(!publicJwk.includes('"d"'));
    const thumbprint = await calculateJwkThumbprint(JSON.parse(publicJwk) as Record<string, string>);
    assert.equal(kid, thumbprint.slice(0, 16));
  });

  const p256 = generateKeyPairSync("ec", { namedCurve: "P-256" }).privateKey.export({ format: "jwk" });
  const ed25519 = generateKeyPairSync("ed25519").privateKey.export({ format: "jwk" });
  const other = first(fresh());
  const damagedFiles: Record<string, [text: string, says: RegExp]> = {
    empty: ["", /empty/],
    blank: [" \n", /empty/],
    "some text": ["correct horse battery staple", /not a master key/],
    "a signing key": [generateSigningKey(), /signing key, not a master key/],
    "a list": ["[]", /not a master key/],
    null: ["null", /not a master key/],
    "no keys": ['{"keys": [], "primary": "x"}', /not a master key/],
    "no primary": [JSON.stringify({ keys: fresh().keys }), /not a master key/],
    "primary names no key": [JSON.stringify({ ...fresh(), primary: "other" }), /`primary` does not name any/],
    "cut off": [generateMasterKey().fileText.slice(0, 120), /truncated or damaged/],
    "key cut off": [changed((key) => ({ ...key, d: key["d"]?.slice(0, -8) })), /truncated or damaged/],
    "public half cut off": [
      changed((key) => ({ ...key, x: key["x"]?.slice(0, -8) })),
      /truncated or damaged/,
    ],
    "private half of another key": [changed((key) => ({ ...key, d: other["d"] })), /truncated or damaged/],
    "kid of another key": [changed((key) => ({ ...key, kid: other["kid"] })), /truncated or damaged/],
    "public key only": [changed((key) => ({ ...key, d: undefined })), /only a public key/],
    "P-256": [JSON.stringify({ keys: [p256], primary: "x" }), /wrong type/],
    Ed25519: [JSON.stringify({ keys: [ed25519], primary: "x" }), /wrong type/],
    "no key at all": [JSON.stringify({ keys: ["x"], primary: "x" }), /wrong type/],
    "the same key twice": [JSON.stringify({ keys: [other, other], primary: other["kid"] }), /twice/],
  };
  for (const [name, [text, says]] of Object.entries(damagedFiles)) {
    test(`${name}: a clear error that holds nothing of the file`, () => {
      assert.throws(
        () => readMasterKey(text),
        (error) => {
          assert.ok(error instanceof MasterKeyError);
          assert.match(error.message, says);
          const shown = inspect(error, { depth: 10, showHidden: true });
          for (const secret of text.match(/"d": ?"[\w-]+/g) ?? [])
            assert.ok(!shown.includes(secret.slice(-20)));
          assert.ok(!shown.includes("horse"));
          return true;
        },
      );
    });
  }

  test("a read key does not print its private half", () => {
    const file = fresh();
    const shown = inspect(readMasterKey(JSON.stringify(file)), { depth: 10, showHidden: true });
    assert.ok(!shown.includes(String(first(file)["d"])));
  });
});

suite("the public key in the database", () => {
  const { publicJwk, fileText } = generateMasterKey();
  const jwk = JSON.parse(publicJwk) as Record<string, string>;
  const wrong: Record<string, [text: string, says: RegExp]> = {
    "a private key": [JSON.stringify(first(JSON.parse(fileText) as KeyFile)), /must never be stored/],
    "another kid": [JSON.stringify({ ...jwk, kid: "other" }), /does not match its `kid`/],
    "another curve": [JSON.stringify({ ...jwk, crv: "X448" }), /not a JSON Web Key on X25519/],
    "no JSON": ["x", /not a JSON Web Key/],
  };
  for (const [name, [text, says]] of Object.entries(wrong)) {
    test(`${name} is refused`, () => {
      assert.throws(
        () => readPublicKey(text),
        (error) => error instanceof MasterKeyError && says.test(error.message),
      );
    });
  }
});
