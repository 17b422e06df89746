/**
 * Made `vectors.json`, once: `node test/vault/make-vectors.ts > test/vault/vectors.json`. Not run by the tests: vectors that are
 * made again prove nothing. The key is a test key, made here and used nowhere else.
 */
import {
  CompactEncrypt,
  FlattenedEncrypt,
  GeneralEncrypt,
  generateKeyPair,
  importJWK,
  type FlattenedJWE,
} from "jose";
import { encodeBinding, type SealBinding } from "#vault/binding.ts";
import { generateMasterKey, readMasterKey } from "#vault/master-key.ts";
import { openVault } from "#vault/vault.ts";
import { must } from "#lib/assert.ts";

const { fileText: masterKey, publicJwk, kid } = generateMasterKey();
const other = generateMasterKey();
const vault = openVault({ publicKey: publicJwk, privateKeys: readMasterKey(masterKey).privateKeys });
const key = await importJWK(JSON.parse(publicJwk), "ECDH-ES+A256KW");

const binding: SealBinding = {
  purpose: "credential",
  accountId: "acct_0TESTaaaaaaaaaaaaaaaaaaaaaaa",
  rowId: "cred_0TESTbbbbbbbbbbbbbbbbbbbbbbb",
  strategyId: "strat_northwind_portal",
};
const text = JSON.stringify([
  ["username", "amelia"],
  ["password", " pässwörd\u0000 🔑 "],
]);
const plaintext = Buffer.from(text);
const aad = encodeBinding(binding);
const header = { alg: "ECDH-ES+A256KW", enc: "A256GCM", kid };
const write = (jwe: object): string => JSON.stringify(jwe);
const utf8 = (bytes: Uint8Array): string => Buffer.from(bytes).toString("utf8");
const b64 = (bytes: Uint8Array): string => Buffer.from(bytes).toString("base64url");

async function flattened(
  protectedHeader: object,
  more: { aad?: Uint8Array; to?: unknown; unprotected?: object } = {},
) {
  const encrypt = new FlattenedEncrypt(plaintext).setProtectedHeader(
    protectedHeader as { alg: string; enc: string },
  );
  if (more.aad !== undefined && more.aad.length > 0) encrypt.setAdditionalAuthenticatedData(more.aad);
  if (more.unprotected) encrypt.setUnprotectedHeader(more.unprotected as { alg: string; enc: string });
  return await encrypt.encrypt((more.to ?? key) as Parameters<typeof encrypt.encrypt>[0]);
}
const ours = (protectedHeader: object) => flattened(protectedHeader, { aad });
/** The members in the order of the format, so that only the named difference is one. */
const ordered = ({ protected: p, encrypted_key, iv, ciphertext, tag, aad: a, ...rest }: FlattenedJWE) =>
  write({ protected: p, encrypted_key, iv, ciphertext, tag, aad: a, ...rest });

const general = new GeneralEncrypt(plaintext)
  .setProtectedHeader({ alg: header.alg, enc: header.enc })
  .setAdditionalAuthenticatedData(aad);
general.addRecipient(key).setUnprotectedHeader({ kid });
general
  .addRecipient(await importJWK(JSON.parse(other.publicJwk), "ECDH-ES+A256KW"))
  .setUnprotectedHeader({ kid: other.kid });

const p256 = await generateKeyPair("ECDH-ES+A256KW", { crv: "P-256" });
const symmetric = new Uint8Array(32).fill(7);
const good = JSON.parse(utf8((await vault.seal(plaintext, binding)).sealed)) as Required<FlattenedJWE>;
const reordered = Object.fromEntries(Object.entries(good).toReversed());
const cut = (part: string, bytes: number) => b64(Buffer.from(part, "base64url").subarray(0, bytes));
const version2 = Buffer.from(aad);
must(version2[5] === 0x31 || null, "the version's digit");
version2[5] = 0x32;

/** `valid`: a sound JWE that a general-purpose library opens with our private key; only the vault's own rules refuse it. */
const mustFail = [
  {
    name: "key algorithm ECDH-ES (direct)",
    valid: true,
    sealed: ordered(await ours({ ...header, alg: "ECDH-ES" })),
  },
  {
    name: "key algorithm ECDH-ES+A128KW",
    valid: true,
    sealed: ordered(await ours({ ...header, alg: "ECDH-ES+A128KW" })),
  },
  {
    name: "content algorithm A128GCM",
    valid: true,
    sealed: ordered(await ours({ ...header, enc: "A128GCM" })),
  },
  {
    name: "content algorithm A256CBC-HS512",
    valid: true,
    sealed: ordered(await ours({ ...header, enc: "A256CBC-HS512" })),
  },
  { name: "compressed (zip header)", valid: true, sealed: ordered(await ours({ ...header, zip: "DEF" })) },
  { name: "one more header", valid: true, sealed: ordered(await ours({ ...header, cty: "text" })) },
  { name: "no kid", valid: true, sealed: ordered(await ours({ alg: header.alg, enc: header.enc })) },
  { name: "unknown kid", valid: true, sealed: ordered(await ours({ ...header, kid: other.kid })) },
  { name: "empty kid", valid: true, sealed: ordered(await ours({ ...header, kid: "" })) },
  { name: "no aad", valid: true, sealed: ordered(await flattened(header)) },
  {
    name: "aad of another version",
    valid: true,
    sealed: ordered(await flattened(header, { aad: version2 })),
  },
  {
    name: "unprotected header beside it",
    valid: true,
    sealed: ordered(await flattened(header, { aad, unprotected: { note: "x" } })),
  },
  {
    name: "kid only in the unprotected header",
    valid: true,
    sealed: ordered(await flattened({ alg: header.alg, enc: header.enc }, { aad, unprotected: { kid } })),
  },
  { name: "several recipients", valid: true, sealed: write(await general.encrypt()) },
  { name: "members in another order", valid: true, sealed: write(reordered) },
  { name: "white space in the JSON", valid: true, sealed: JSON.stringify(good, null, 1) },
  { name: "one more member", valid: true, sealed: write({ ...good, note: "x" }) },
  {
    name: "compact serialisation",
    valid: false,
    sealed: await new CompactEncrypt(plaintext).setProtectedHeader(header).encrypt(key),
  },
  {
    name: "curve P-256",
    valid: false,
    sealed: ordered(await flattened(header, { aad, to: p256.publicKey })),
  },
  {
    name: "key algorithm dir",
    valid: false,
    sealed: ordered(await flattened({ ...header, alg: "dir" }, { aad, to: symmetric })),
  },
  {
    name: "key algorithm A256GCMKW",
    valid: false,
    sealed: ordered(await flattened({ ...header, alg: "A256GCMKW" }, { aad, to: symmetric })),
  },
  {
    name: "sealed to another key under our kid",
    valid: false,
    sealed: ordered(
      await flattened(header, { aad, to: await importJWK(JSON.parse(other.publicJwk), header.alg) }),
    ),
  },
  { name: "tag of 4 bytes", valid: false, sealed: ordered({ ...good, tag: cut(good.tag, 4) }) },
  { name: "tag of 12 bytes", valid: false, sealed: ordered({ ...good, tag: cut(good.tag, 12) }) },
  { name: "empty tag", valid: false, sealed: ordered({ ...good, tag: "" }) },
  { name: "iv of 8 bytes", valid: false, sealed: ordered({ ...good, iv: cut(good.iv, 8) }) },
  {
    name: "ciphertext one byte short",
    valid: false,
    sealed: ordered({ ...good, ciphertext: cut(good.ciphertext, plaintext.length - 1) }),
  },
  {
    name: "wrapped key cut off",
    valid: false,
    sealed: ordered({ ...good, encrypted_key: cut(good.encrypted_key, 32) }),
  },
  {
    name: "aad replaced after sealing",
    valid: false,
    sealed: ordered({ ...good, aad: b64(encodeBinding({ ...binding, rowId: "cred_other" })) }),
  },
  { name: "cut off", valid: false, sealed: ordered(good).slice(0, -20) },
  { name: "nothing", valid: false, sealed: "" },
  { name: "null", valid: false, sealed: "null" },
  { name: "a list", valid: false, sealed: "[]" },
];

const vectors = {
  note: "A test key, used nowhere else. Made once by make-vectors.ts.",
  masterKey: JSON.parse(masterKey) as object,
  binding,
  opens: [
    { name: "a credential", plaintext: b64(plaintext), sealed: ordered(good) },
    {
      name: "nothing at all",
      plaintext: "",
      sealed: utf8((await vault.seal(new Uint8Array(), binding)).sealed),
    },
    {
      name: "all bytes",
      plaintext: b64(Uint8Array.from({ length: 256 }, (_, index) => index)),
      sealed: utf8(
        (
          await vault.seal(
            Uint8Array.from({ length: 256 }, (_, index) => index),
            binding,
          )
        ).sealed,
      ),
    },
  ],
  mustFail,
};
process.stdout.write(`${JSON.stringify(vectors, null, 2)}\n`);
