import { StoreFailed } from "./store.ts";

/** Where the objects are stored, from the settings. */
export interface S3Settings {
  readonly bucket: string;
  /** Prefix of every key; empty, or ends in `/`. */
  readonly prefix: string;
  /** null: the AWS SDK's own setting. */
  readonly region: string | null;
  /** null: AWS, or the AWS SDK's own setting. */
  readonly endpoint: string | null;
  /** Where clients that download reach the store. null: at the same address as the service. */
  readonly publicEndpoint: string | null;
  readonly pathStyle: boolean;
}

interface SdkError extends Error {
  readonly code?: unknown;
  readonly Region?: unknown;
  readonly $metadata?: { readonly httpStatusCode?: number };
}

/** Whether the store reports a missing object, as opposed to a missing bucket. */
export function isNoSuchObject(error: unknown): boolean {
  const { name, $metadata } = error as SdkError;
  return name === "NoSuchKey" || (name === "NotFound" && $metadata?.httpStatusCode === 404);
}

/**
 * Describes an error of the SDK in a sentence. Uses only its names and codes: the store's own message may quote a request with
 * its signature.
 */
export function storeFailure(settings: S3Settings, error: unknown): StoreFailed {
  if (error instanceof StoreFailed) return error;
  const { name, message, code, $metadata } = error as SdkError;
  const status = $metadata?.httpStatusCode;
  const place = `the object store (bucket ${settings.bucket}${settings.endpoint === null ? "" : ` at ${settings.endpoint}`})`;
  const known = /region is missing/i.test(message) ? "RegionMissing" : plainName(name);
  const says =
    known === null || REMEDIES[known] === undefined
      ? bySystem(plainName(code), status, settings)
      : REMEDIES[known](settings, plainName((error as SdkError).Region));
  return new StoreFailed(`${place} ${says}`, known ?? plainName(code) ?? String(status ?? "unknown"));
}

const plainName = (text: unknown): string | null =>
  typeof text === "string" && /^[\w-]{1,60}$/.test(text) && text !== "Error" ? text : null;

function bySystem(code: string | null, status: number | undefined, settings: S3Settings): string {
  if (status === 403) return FORBIDDEN;
  if (status === 301 || status === 400) return elsewhere(settings, null);
  if (status !== undefined)
    return `answers with status ${status}. If this persists, check the store's own log.`;
  return `can't be reached${code === null ? "" : ` (${code})`}. Check that it is running and that its address is correct.`;
}

type Remedy = (settings: S3Settings, region: string | null) => string;

const FORBIDDEN =
  "denies access to this identity (403): it needs s3:GetObject, s3:PutObject, s3:DeleteObject and s3:AbortMultipartUpload on the objects, " +
  "s3:ListBucket and s3:ListBucketMultipartUploads on the bucket.";

const unreachable: Remedy = () =>
  "does not answer in time. Check that it is running, that its address is correct, and that this machine can reach it.";

const elsewhere: Remedy = ({ region }, actual) =>
  `is in another region than ${region ?? "the one that is set"}${actual === null ? "" : `: in ${actual}`}. Set LATCHKEY_S3_REGION.`;

const busy: Remedy = () => "is overloaded. The request is retried.";

const REMEDIES: Readonly<Record<string, Remedy>> = {
  NoSuchBucket: () => "does not exist. Create the bucket, or correct LATCHKEY_S3_BUCKET.",
  AccessDenied: () => FORBIDDEN,
  Forbidden: () => FORBIDDEN,
  InvalidAccessKeyId: () => "does not know the access key that this machine uses.",
  SignatureDoesNotMatch: () => "rejects the signature: this machine's secret access key is wrong.",
  ExpiredToken: () => "rejects this machine's AWS credentials: they have expired.",
  RequestTimeTooSkewed: () =>
    "rejects this machine's time: the two clocks differ too much. Synchronize them by NTP.",
  PermanentRedirect: elsewhere,
  AuthorizationHeaderMalformed: elsewhere,
  IllegalLocationConstraintException: elsewhere,
  RegionMissing: () => "needs a region, and none is set. Set LATCHKEY_S3_REGION or AWS_REGION.",
  CredentialsProviderError: () =>
    "needs credentials, and this machine has none. Give it a role, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY.",
  QuotaExceeded: () => "is full: its quota is used up.",
  SlowDown: busy,
  ServiceUnavailable: busy,
  TimeoutError: unreachable,
};
