import assert from "node:assert/strict";
import {
  createCipheriv,
  createHash,
  createPublicKey,
  diffieHellman,
  generateKeyPairSync,
  randomBytes,
} from "node:crypto";
import { readFileSync } from "node:fs";
import { suite, test } from "node:test";
import { encodeBinding, type SealBinding } from "#vault/binding.ts";
import { generateMasterKey, readMasterKey } from "#vault/master-key.ts";
import { openVault } from "#vault/vault.ts";

/**
 * Wycheproof's vectors against the three primitives that a seal is made of, in the implementation that it uses: jose calls
 * the Web Crypto API of the Node that runs the service. docs/decisions/0013.
 */
const { subtle } = globalThis.crypto;

type Result = "valid" | "invalid" | "acceptable";

function vectors(name: string): readonly [id: number, result: Result, ...values: string[]][] {
  const file = new URL(`./fixtures/wycheproof/${name}.json`, import.meta.url);
  return (JSON.parse(readFileSync(file, "utf8")) as { rows: [number, Result, ...string[]][] }).rows;
}

const bytes = (hex: string | undefined): Buffer<ArrayBuffer> => Buffer.from(hex ?? "", "hex");
const hexOf = (buffer: ArrayBuffer): string => Buffer.from(buffer).toString("hex");

suite("Wycheproof", () => {
  test("AES-256-GCM with a 96-bit IV and a 128-bit tag: all 66", async () => {
    const rows = vectors("aes-gcm");
    assert.equal(rows.length, 66);
    for (const [id, result, key, iv, aad, message, ciphertext, tag] of rows) {
      const imported = await subtle.importKey("raw", bytes(key), "AES-GCM", false, ["encrypt", "decrypt"]);
      const algorithm = { name: "AES-GCM", iv: bytes(iv), additionalData: bytes(aad), tagLength: 128 };
      const sealed = Buffer.concat([bytes(ciphertext), bytes(tag)]);
      if (result === "valid") {
        assert.equal(hexOf(await subtle.decrypt(algorithm, imported, sealed)), message, `${id}`);
        assert.equal(
          hexOf(await subtle.encrypt(algorithm, imported, bytes(message))),
          sealed.toString("hex"),
          `${id}`,
        );
      } else await assert.rejects(subtle.decrypt(algorithm, imported, sealed), `${id}`);
    }
  });

  test("X25519: all 518, and a shared secret of zeros is refused", async () => {
    const rows = vectors("x25519");
    assert.equal(rows.length, 518);
    let zeros = 0;
    for (const [id, , theirs, ours, shared] of rows) {
      const derived = derive(bytes(ours), bytes(theirs));
      if (/^0+$/.test(shared ?? "")) {
        zeros++;
        await assert.rejects(derived, `${id}`);
      } else assert.equal(hexOf(await derived), shared, `${id}`);
    }
    assert.equal(zeros, 31);
  });

  test("AES-256 key wrap of 256-bit keys: every valid one unwraps, no invalid one does", async () => {
    let seen = 0;
    for (const [id, result, key, message, ciphertext] of vectors("aes-wrap")) {
      const imported = await subtle.importKey("raw", bytes(key), "AES-KW", false, ["unwrapKey"]);
      const unwrapped = subtle.unwrapKey(
        "raw",
        bytes(ciphertext),
        imported,
        "AES-KW",
        { name: "HMAC", hash: "SHA-256" },
        true,
        ["sign"],
      );
      if (result === "valid") {
        seen++;
        assert.equal(hexOf(await subtle.exportKey("raw", await unwrapped)), message, `${id}`);
      } else await assert.rejects(unwrapped, `${id}`);
    }
    assert.ok(seen > 5, `${seen} valid vectors`);
  });
});

/** As jose does it: the public half as a JWK. */
async function derive(privateKey: Buffer, publicKey: Buffer): Promise<ArrayBuffer> {
  const x = publicKey.toString("base64url");
  // The JWK of a private key wants its public half too; PKCS #8 (RFC 8410) does not.
  const pkcs8 = Buffer.concat([bytes("302e020100300506032b656e04220420"), privateKey]);
  const own = await subtle.importKey("pkcs8", pkcs8, "X25519", false, ["deriveBits"]);
  const other = await subtle.importKey("jwk", { kty: "OKP", crv: "X25519", x }, "X25519", false, []);
  return await subtle.deriveBits({ name: "X25519", public: other }, own, 256);
}

suite("a seal made by hand from RFC 7516, RFC 7518 and RFC 8037", () => {
  const binding: SealBinding = {
    purpose: "credential",
    accountId: "acct_a",
    rowId: "cred_a",
    strategyId: "strat_a",
  };
  const { fileText, publicJwk, kid } = generateMasterKey();
  const vault = openVault({ publicKey: publicJwk, privateKeys: readMasterKey(fileText).privateKeys });

  test("opens: what is written here is what the vault reads", async () => {
    const ephemeral = generateKeyPairSync("x25519");
    const x = ephemeral.publicKey.export({ format: "jwk" }).x ?? "";
    const publicKey = createPublicKey({
      key: JSON.parse(publicJwk) as Record<string, string>,
      format: "jwk",
    });
    const shared = diffieHellman({ privateKey: ephemeral.privateKey, publicKey });
    const opened = await vault.open(sealByHand(x, shared, "by hand"), binding);
    assert.equal(Buffer.from(opened).toString(), "by hand");
  });

  test("to a point of low order, with the shared secret that everybody knows, does not open", async () => {
    const lowOrder = vectors("x25519").filter(([, , , , shared]) => /^0+$/.test(shared ?? ""));
    for (const [id, , point] of lowOrder) {
      const sealed = sealByHand(bytes(point).toString("base64url"), Buffer.alloc(32), "forged");
      await assert.rejects(vault.open(sealed, binding), { code: "cannot_open" }, `${id}`);
    }
  });

  function sealByHand(x: string, shared: Buffer, text: string): Buffer {
    const header = { alg: "ECDH-ES+A256KW", enc: "A256GCM", kid, epk: { x, crv: "X25519", kty: "OKP" } };
    const protectedHeader = Buffer.from(JSON.stringify(header)).toString("base64url");
    const contentKey = randomBytes(32);
    const wrap = createCipheriv("id-aes256-wrap", concatKdf(shared, header.alg), Buffer.alloc(8, 0xa6));
    const iv = randomBytes(12);
    const aad = encodeBinding(binding).toString("base64url");
    const cipher = createCipheriv("aes-256-gcm", contentKey, iv);
    cipher.setAAD(Buffer.from(`${protectedHeader}.${aad}`));
    const ciphertext = Buffer.concat([cipher.update(text), cipher.final()]);
    const b64 = (part: Buffer): string => part.toString("base64url");
    return Buffer.from(
      JSON.stringify({
        protected: protectedHeader,
        encrypted_key: b64(Buffer.concat([wrap.update(contentKey), wrap.final()])),
        iv: b64(iv),
        ciphertext: b64(ciphertext),
        tag: b64(cipher.getAuthTag()),
        aad,
      }),
    );
  }

  /** RFC 7518, 4.6.2: one round of SHA-256 gives the 256 bits. */
  function concatKdf(shared: Buffer, algorithm: string): Buffer {
    const word = (value: number): Buffer => {
      const buffer = Buffer.alloc(4);
      buffer.writeUInt32BE(value);
      return buffer;
    };
    return createHash("sha256")
      .update(word(1))
      .update(shared)
      .update(Buffer.concat([word(algorithm.length), Buffer.from(algorithm), word(0), word(0), word(256)]))
      .digest();
  }
});
