import type * as S3 from "@aws-sdk/client-s3";
import type { S3Settings } from "./s3-failures.ts";

/** The SDK's client and its commands, loaded at their first use. */
export interface OpenClient {
  readonly client: S3.S3Client;
  readonly s3: typeof S3;
}

/** Time limits: to connect, between two bytes, and until a response begins. */
export interface StoreTimeouts {
  readonly connectMs: number;
  readonly silentMs: number;
  readonly answerMs: number;
}

export const STORE_TIMEOUTS: StoreTimeouts = { connectMs: 3_000, silentMs: 10_000, answerMs: 60_000 };
const TRIES_MAX = 3;
/** Streams that are read slowly occupy a socket each, and a run with many sources must still be able to write. */
const SOCKETS_MAX = 1_000;

/** Credentials come from the AWS SDK: variables, a profile, or the machine's role. */
export async function openClient(
  settings: S3Settings,
  endpoint: string | null,
  patience: StoreTimeouts,
): Promise<OpenClient> {
  const s3 = await import("@aws-sdk/client-s3");
  const client = new s3.S3Client({
    ...(settings.region !== null && { region: settings.region }),
    ...(endpoint !== null && { endpoint }),
    forcePathStyle: settings.pathStyle,
    maxAttempts: TRIES_MAX,
    requestHandler: {
      connectionTimeout: patience.connectMs,
      socketTimeout: patience.silentMs,
      requestTimeout: patience.answerMs,
      throwOnRequestTimeout: true,
      httpAgent: { maxSockets: SOCKETS_MAX },
      httpsAgent: { maxSockets: SOCKETS_MAX },
    },
    // Ceph rejects multipart uploads with AWS's checksums.
    ...(settings.endpoint !== null && {
      requestChecksumCalculation: "WHEN_REQUIRED",
      responseChecksumValidation: "WHEN_REQUIRED",
    }),
  });
  return { client, s3 };
}
