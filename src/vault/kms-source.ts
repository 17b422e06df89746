import { randomUUID } from "node:crypto";
import type * as Kms from "@aws-sdk/client-kms";
import { Secret } from "#lib/secret.ts";
import { keepFile, readKeyFile, type KeySource } from "./key-source.ts";
import { MasterKeyError } from "./master-key.ts";

/** The file's content: the keyset as KMS encrypted it, and the parameters that KMS needs to decrypt it. */
interface WrappedKeyset {
  readonly wrapped_by: "aws-kms";
  readonly context: Readonly<Record<string, string>>;
  readonly ciphertext: string;
}

/** The most that KMS encrypts in one call. */
const PLAINTEXT_BYTES_MAX = 4_096;
const CONNECT_MS = 3_000;
const ANSWER_MS = 10_000;

/**
 * A keyset in a file, encrypted by AWS KMS. It is generated on this machine and can be read only by identities that may call
 * kms:Decrypt. It is opened once at start, and again when a value names a key that it did not contain then. The encryption
 * context holds an id that was generated with the file, so that a key policy can be limited to this installation. Region,
 * credentials and endpoint are the AWS SDK's own settings.
 */
export function openKmsSource(file: string, keyId: string): KeySource {
  return {
    name: `the file ${file}, wrapped by AWS KMS key ${keyId}`,
    canReread: true,
    read: async () => await unwrap(file, keyId, await readKeyFile(file)),
    keep: async (keyset, how) => {
      const context =
        how === "create" ? newContext() : (parse(await readKeyFile(file))?.context ?? newContext());
      await keepFile(file, await wrap(keyset, keyId, context), how);
    },
  };
}

function newContext(): Readonly<Record<string, string>> {
  return { "latchkey:purpose": "master-key", "latchkey:installation": randomUUID() };
}

async function wrap(
  keyset: Secret,
  keyId: string,
  context: Readonly<Record<string, string>>,
): Promise<string> {
  const plain = Buffer.from(JSON.stringify(JSON.parse(keyset.reveal())), "utf8");
  try {
    if (plain.length > PLAINTEXT_BYTES_MAX) {
      throw new MasterKeyError(
        `The keyset is too large for AWS KMS (${plain.length} of at most ${PLAINTEXT_BYTES_MAX} bytes). ` +
          "Retire keys that are no longer needed, and remove them from the keyset.",
      );
    }
    const { CiphertextBlob } = await callKms(keyId, async (client, { EncryptCommand }) =>
      client.send(new EncryptCommand({ KeyId: keyId, Plaintext: plain, EncryptionContext: { ...context } })),
    );
    const wrapped: WrappedKeyset = {
      wrapped_by: "aws-kms",
      context,
      ciphertext: Buffer.from(CiphertextBlob ?? []).toString("base64"),
    };
    return `${JSON.stringify(wrapped, null, 2)}\n`;
  } finally {
    plain.fill(0);
  }
}

async function unwrap(file: string, keyId: string, text: string): Promise<Secret> {
  const wrapped = parse(text);
  if (!wrapped) {
    // A plain keyset is never accepted: LATCHKEY_MASTER_KEY_KMS promises that the file alone opens nothing.
    throw new MasterKeyError(
      `LATCHKEY_MASTER_KEY_KMS is set, but ${file} does not contain a keyset that is wrapped by AWS KMS. Run ` +
        "`latchkey master-key wrap` to wrap a plain one, or restore the file from your backup.",
    );
  }
  const { Plaintext } = await callKms(keyId, async (client, { DecryptCommand }) =>
    client.send(
      new DecryptCommand({
        KeyId: keyId,
        CiphertextBlob: Buffer.from(wrapped.ciphertext, "base64"),
        EncryptionContext: { ...wrapped.context },
      }),
    ),
  );
  const plain = Buffer.from(Plaintext ?? []);
  try {
    return new Secret(plain.toString("utf8"));
  } finally {
    plain.fill(0);
    Plaintext?.fill(0);
  }
}

/** One call; the SDK is loaded only where it is needed. Throws MasterKeyError. */
async function callKms<T>(
  keyId: string,
  call: (client: Kms.KMSClient, kms: typeof Kms) => Promise<T>,
): Promise<T> {
  const kms = await import("@aws-sdk/client-kms");
  const client = new kms.KMSClient({
    maxAttempts: 3,
    requestHandler: { connectionTimeout: CONNECT_MS, requestTimeout: ANSWER_MS, throwOnRequestTimeout: true },
  });
  try {
    return await call(client, kms);
  } catch (error) {
    throw new MasterKeyError(
      `AWS KMS could not encrypt or decrypt the master key with ${keyId}: ${describe(error as Error)}`,
    );
  } finally {
    client.destroy();
  }
}

/** Uses the SDK's error names. The service's own messages may quote a request and are not shown. */
function describe({ name, message }: Error): string {
  if (/region is missing/i.test(message)) return "no region is set. Set AWS_REGION.";
  return (
    REMEDIES.get(name) ?? `${name}. Check that this machine can reach KMS and that its clock is correct.`
  );
}

const REMEDIES = new Map([
  [
    "InvalidCiphertextException",
    "the file is damaged, belongs to another installation, or was wrapped by another key. Restore it from your backup.",
  ],
  ["IncorrectKeyException", "the file was wrapped by another KMS key. Check LATCHKEY_MASTER_KEY_KMS."],
  ["NotFoundException", "there is no such KMS key in this account and region."],
  ["AccessDeniedException", "this machine's AWS identity may not use the key: it needs kms:Decrypt on it."],
  ["DisabledException", "the KMS key is disabled. Enable it again."],
  ["KMSInvalidStateException", "the KMS key is pending deletion or not ready."],
  [
    "CredentialsProviderError",
    "this machine has no AWS credentials. Give it a role, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY.",
  ],
]);

function parse(text: string): WrappedKeyset | undefined {
  try {
    const value = JSON.parse(text) as Partial<WrappedKeyset> | null;
    const { wrapped_by, context, ciphertext } = value ?? {};
    const isWhole = wrapped_by === "aws-kms" && typeof context === "object" && typeof ciphertext === "string";
    return isWhole ? { wrapped_by, context, ciphertext } : undefined;
  } catch {
    return undefined;
  }
}
