import { StoreFailed } from "./store.ts";

/** Where the objects are, as the settings say. */
export interface S3Settings {
  readonly bucket: string;
  /** Before every key; empty, or ends in `/`. */
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

/** Whether the store says that there is no such object, and not that there is no such bucket. */
export function isNoSuchObject(error: unknown): boolean {
  const { name, $metadata } = error as SdkError;
  return name === "NoSuchKey" || (name === "NotFound" && $metadata?.httpStatusCode === 404);
}

/**
 * What the SDK has thrown, as a sentence that names the fault. By its names and codes alone: a message of the store may quote a
 * request with its signature.
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
    return `answers with status ${status}. If it goes on, look at the store's own log.`;
  return `can't be reached${code === null ? "" : ` (${code})`}. Is it up, and is its address right?`;
}

type Remedy = (settings: S3Settings, region: string | null) => string;

const FORBIDDEN =
  "refuses this identity (403): it needs s3:GetObject, s3:PutObject, s3:DeleteObject and s3:AbortMultipartUpload on the objects, " +
  "s3:ListBucket and s3:ListBucketMultipartUploads on the bucket.";

const unreachable: Remedy = () =>
  "does not answer in time. Is it up, is its address right, and may this machine reach it?";

const elsewhere: Remedy = ({ region }, actual) =>
  `is in another region than ${region ?? "the one that is set"}${actual === null ? "" : `: in ${actual}`}. Set LATCHKEY_S3_REGION.`;

const busy: Remedy = () => "is overloaded. The request is retried.";

const REMEDIES: Readonly<Record<string, Remedy>> = {
  NoSuchBucket: () => "does not exist. Make the bucket, or set LATCHKEY_S3_BUCKET right.",
  AccessDenied: () => FORBIDDEN,
  Forbidden: () => FORBIDDEN,
  InvalidAccessKeyId: () => "does not know the access key that this machine uses.",
  SignatureDoesNotMatch: () => "refuses the signature: the secret access key of this machine is wrong.",
  ExpiredToken: () => "refuses the AWS credentials of this machine: their time is over.",
  RequestTimeTooSkewed: () =>
    "refuses the time of this machine: the two clocks differ too much. Set them by NTP.",
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
