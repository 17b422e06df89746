import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { suite, test } from "node:test";
import {
  flattenedDecrypt,
  generalDecrypt,
  importJWK,
  type FlattenedJWE,
  type GeneralJWE,
  type JWK,
} from "jose";
import type { SealBinding } from "#vault/binding.ts";
import { readMasterKey } from "#vault/master-key.ts";
import { openVault, VaultError } from "#vault/vault.ts";

const vectors = JSON.parse(readFileSync(new URL("./vectors.json", import.meta.url), "utf8")) as {
  masterKey: { keys: JWK[] };
  binding: SealBinding;
  opens: { name: string; plaintext: string; sealed: string }[];
  mustFail: { name: string; valid: boolean; sealed: string }[];
};
const masterKey = readMasterKey(JSON.stringify(vectors.masterKey));
const vault = openVault({ publicKey: masterKey.publicJwk, privateKeys: masterKey.privateKeys });
const { binding } = vectors;
const cannotOpen = (error: unknown): boolean =>
  error instanceof VaultError &&
  error.code === "cannot_open" &&
  error.message === "The vault cannot open this." &&
  error.cause === undefined;

suite("what was sealed earlier opens today", () => {
  for (const { name, plaintext, sealed } of vectors.opens) {
    test(name, async () => {
      const opened = await vault.open(Buffer.from(sealed), binding);
      assert.equal(Buffer.from(opened).toString("base64url"), plaintext);
    });
  }
});

suite("what is not ours to the letter never opens, with one error for all", () => {
  for (const { name, valid, sealed } of vectors.mustFail) {
    test(name, async () => {
      // The refusal is the vault's rule and no accident of a broken vector.
      if (valid)
        assert.deepEqual(
          await openLeniently(sealed),
          Buffer.from(vectors.opens[0]?.plaintext ?? "", "base64url"),
        );
      await assert.rejects(vault.open(Buffer.from(sealed), binding), cannotOpen);
    });
  }
});

async function openLeniently(sealed: string): Promise<Buffer> {
  const jwe = JSON.parse(sealed) as FlattenedJWE | GeneralJWE;
  const [jwk] = vectors.masterKey.keys;
  const { alg: _, ...anyAlgorithm } = jwk as JWK;
  const key = await importJWK(anyAlgorithm, "ECDH-ES+A256KW");
  const { plaintext } =
    "recipients" in jwe ? await generalDecrypt(jwe, key) : await flattenedDecrypt(jwe, key);
  return Buffer.from(plaintext);
}

suite("a sealed value that was moved does not open", () => {
  const moved: Record<keyof SealBinding, readonly string[]> = {
    purpose: ["login_session", "sentinel", ""],
    accountId: ["acct_other", "", `${binding.accountId} `],
    rowId: ["cred_other", "", binding.rowId.toLowerCase()],
    strategyId: ["strat_other", "", `${binding.strategyId}\u0000`],
    version: ["", "1"],
  };
  const [vector] = vectors.opens;
  for (const [field, values] of Object.entries(moved)) {
    for (const value of values) {
      test(`${field} ${JSON.stringify(value)}`, async () => {
        const elsewhere = { ...binding, [field]: value } as SealBinding;
        await assert.rejects(vault.open(Buffer.from(vector?.sealed ?? ""), elsewhere), cannotOpen);
      });
    }
  }

  test("fields swapped with each other", async () => {
    const swapped = { ...binding, accountId: binding.rowId, rowId: binding.accountId };
    await assert.rejects(vault.open(Buffer.from(vector?.sealed ?? ""), swapped), cannotOpen);
  });
});

test("no bit of a sealed value can be flipped", async () => {
  const sealed = Buffer.from(vectors.opens[1]?.sealed ?? "");
  assert.equal((await vault.open(sealed, binding)).length, 0);
  for (let bit = 0; bit < sealed.length * 8; bit++) {
    const flipped = Buffer.from(sealed);
    flipped[bit >> 3] = (flipped[bit >> 3] ?? 0) ^ (1 << (bit & 7));
    await assert.rejects(vault.open(flipped, binding), cannotOpen, `bit ${bit}`);
  }
});

test("no sealed value opens when it is cut off anywhere", async () => {
  const sealed = Buffer.from(vectors.opens[1]?.sealed ?? "");
  for (let length = 0; length < sealed.length; length++) {
    await assert.rejects(vault.open(sealed.subarray(0, length), binding), cannotOpen, `${length} bytes`);
  }
});
