/**
 * How fast the vault seals and opens, beside what it is made of and what one might take instead, in one run: bare
 * AES-256-GCM, bare `jose` with the same algorithms, and the AWS Encryption SDK for JavaScript with its default suite.
 * Counted by the CPU time of the process, so that what else the machine does counts little: "per second" is per second of
 * one core. The SDK is installed by the bench itself into node_modules/.cache; it is no dependency of the project.
 */
import { execFileSync } from "node:child_process";
import { createCipheriv, createDecipheriv, createPublicKey, randomBytes } from "node:crypto";
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join, resolve } from "node:path";
import { FlattenedEncrypt, flattenedDecrypt } from "jose";
import { encodeBinding } from "#vault/binding.ts";
import { generateMasterKey, readMasterKey } from "#vault/master-key.ts";
import { openVault } from "#vault/vault.ts";

const SDK_VERSION = "5.0.2";
const cache = resolve(import.meta.dirname, "../node_modules/.cache/bench-aws");
/** What a hosted form with user name, password and authenticator secret seals. */
const PLAIN_BYTES = 95;
const ROUNDS = 5;
const ROUND_CPU_MS = 700;
const AT_ONCE = 8;

const plain = randomBytes(PLAIN_BYTES);
const binding = {
  purpose: "credential",
  accountId: "acct_0TESTaaaaaaaaaaaaaaaaaaaaaaa",
  rowId: "cred_0TESTbbbbbbbbbbbbbbbbbbbbbbb",
  strategyId: "strat_northwind_portal",
} as const;

interface Contender {
  readonly name: string;
  seal(): Promise<unknown>;
  open(sealed: unknown): Promise<Uint8Array>;
}

async function benchVault(say: (text: string) => void): Promise<void> {
  const contenders = [bareGcm(), bareJose(), ourVault(), await awsSdk(say)];
  const rows: { name: string; seal: number[]; open: number[] }[] = [];
  for (const contender of contenders) {
    const opened = await contender.open(await contender.seal());
    if (!Buffer.from(opened).equals(plain))
      throw new Error(`${contender.name} does not give back what it was given`);
    rows.push({ name: contender.name, seal: [], open: [] });
  }
  // In turns, so that all of them meet the same moments of the machine.
  for (let round = 0; round < ROUNDS; round++) {
    for (const [index, contender] of contenders.entries()) {
      const sealed = await contender.seal();
      rows[index]?.seal.push(await rate(async () => await contender.seal()));
      rows[index]?.open.push(await rate(async () => await contender.open(sealed)));
    }
    say(`round ${round + 1} of ${ROUNDS}`);
  }
  const medians = rows.map(({ name, seal, open }) => ({ name, seal: median(seal), open: median(open) }));
  const [, jose, vault, sdk] = medians;
  if (!jose || !vault || !sdk) throw new Error("four contenders were measured");
  console.log("| | seals per second and core | opens per second and core |\n|---|---|---|");
  for (const { name, seal, open } of medians) console.log(`| ${name} | ${count(seal)} | ${count(open)} |`);
  const share = (ours: number, theirs: number): string => `${Math.round((ours / theirs) * 100)} %`;
  const times = (ours: number, theirs: number): string => `${(ours / theirs).toFixed(1)} times`;
  console.log(
    `\nThe vault against bare jose: seals ${share(vault.seal, jose.seal)}, opens ${share(vault.open, jose.open)} (goal: 80 % or more).`,
  );
  console.log(
    `The vault against the AWS Encryption SDK: seals ${times(vault.seal, sdk.seal)}, opens ${times(vault.open, sdk.open)} (goal: 5 times or more).`,
  );
}

/** Operations per second of CPU time, over all threads of the process. */
async function rate(operation: () => Promise<unknown>): Promise<number> {
  const started = process.cpuUsage();
  let done = 0;
  for (;;) {
    await Promise.all(Array.from({ length: AT_ONCE }, operation));
    done += AT_ONCE;
    const { user, system } = process.cpuUsage(started);
    const cpuMs = (user + system) / 1_000;
    if (cpuMs >= ROUND_CPU_MS) return (done / cpuMs) * 1_000;
  }
}

const median = (values: readonly number[]): number =>
  values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0;

const count = (value: number): string => Math.round(value).toLocaleString("en-US");

function ourVault(): Contender {
  const { fileText, publicJwk } = generateMasterKey();
  const vault = openVault({ publicKey: publicJwk, privateKeys: readMasterKey(fileText).privateKeys });
  return {
    name: "the vault",
    seal: async () => (await vault.seal(plain, binding)).sealed,
    open: async (sealed) => await vault.open(sealed as Uint8Array, binding),
  };
}

/** The same JWE by the library alone: nothing checked but what jose checks, nothing bound but the same AAD, kept as JSON. */
function bareJose(): Contender {
  const { fileText, publicJwk, kid } = generateMasterKey();
  const publicKey = createPublicKey({ key: JSON.parse(publicJwk) as Record<string, string>, format: "jwk" });
  const privateKey = readMasterKey(fileText).privateKeys.get(kid);
  if (!privateKey) throw new Error("the key that was just made");
  const aad = encodeBinding(binding);
  return {
    name: "bare jose, ECDH-ES+A256KW, A256GCM",
    seal: async () =>
      Buffer.from(
        JSON.stringify(
          await new FlattenedEncrypt(plain)
            .setProtectedHeader({ alg: "ECDH-ES+A256KW", enc: "A256GCM", kid })
            .setAdditionalAuthenticatedData(aad)
            .encrypt(publicKey),
        ),
      ),
    open: async (sealed) =>
      (await flattenedDecrypt(JSON.parse((sealed as Buffer).toString("utf8")), privateKey)).plaintext,
  };
}

/** The lower limit: one symmetric key in the process, no data keys, nobody who can only seal. */
function bareGcm(): Contender {
  const key = randomBytes(32);
  const aad = encodeBinding(binding);
  return {
    name: "bare AES-256-GCM",
    seal: async () => {
      const iv = randomBytes(12);
      const cipher = createCipheriv("aes-256-gcm", key, iv).setAAD(aad);
      return Buffer.concat([iv, cipher.update(plain), cipher.final(), cipher.getAuthTag()]);
    },
    open: async (sealed) => {
      const bytes = sealed as Buffer;
      const decipher = createDecipheriv("aes-256-gcm", key, bytes.subarray(0, 12)).setAAD(aad);
      decipher.setAuthTag(bytes.subarray(-16));
      return Buffer.concat([decipher.update(bytes.subarray(12, -16)), decipher.final()]);
    },
  };
}

/** As much of the SDK as is used here. */
interface AwsEncryptionSdk {
  buildClient(policy: unknown): {
    encrypt(keyring: unknown, plain: Uint8Array, options: object): Promise<{ result: Buffer }>;
    decrypt(keyring: unknown, sealed: Buffer): Promise<{ plaintext: Buffer }>;
  };
  readonly CommitmentPolicy: { readonly REQUIRE_ENCRYPT_REQUIRE_DECRYPT: unknown };
  readonly RawAesWrappingSuiteIdentifier: { readonly AES256_GCM_IV12_TAG16_NO_PADDING: unknown };
  readonly RawAesKeyringNode: new (options: object) => unknown;
}

async function awsSdk(say: (text: string) => void): Promise<Contender> {
  const sdk = loadSdk(say);
  const client = sdk.buildClient(sdk.CommitmentPolicy.REQUIRE_ENCRYPT_REQUIRE_DECRYPT);
  const keyring = new sdk.RawAesKeyringNode({
    keyName: "bench",
    keyNamespace: "latchkey",
    // The SDK wants memory of its own.
    unencryptedMasterKey: new Uint8Array(randomBytes(32)),
    wrappingSuite: sdk.RawAesWrappingSuiteIdentifier.AES256_GCM_IV12_TAG16_NO_PADDING,
  });
  const { purpose, accountId, rowId, strategyId } = binding;
  const encryptionContext = { purpose, accountId, rowId, strategyId };
  return {
    name: `AWS Encryption SDK ${SDK_VERSION}, default suite`,
    seal: async () => (await client.encrypt(keyring, plain, { encryptionContext })).result,
    open: async (sealed) => (await client.decrypt(keyring, sealed as Buffer)).plaintext,
  };
}

function loadSdk(say: (text: string) => void): AwsEncryptionSdk {
  if (!existsSync(join(cache, "node_modules/@aws-crypto/client-node"))) {
    say(`installing @aws-crypto/client-node ${SDK_VERSION} into ${cache}`);
    mkdirSync(cache, { recursive: true });
    writeFileSync(join(cache, "package.json"), '{ "private": true }\n');
    execFileSync(
      "npm",
      [
        "install",
        "--ignore-scripts",
        "--no-audit",
        "--no-fund",
        "--save-exact",
        `@aws-crypto/client-node@${SDK_VERSION}`,
      ],
      { cwd: cache, stdio: ["ignore", "ignore", "inherit"] },
    );
  }
  return createRequire(join(cache, "package.json"))("@aws-crypto/client-node") as AwsEncryptionSdk;
}

await benchVault((text) => void process.stderr.write(`${text}\n`));
