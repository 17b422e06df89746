import type * as S3 from "@aws-sdk/client-s3";
import type { S3Settings } from "./s3-failures.ts";

/** The SDK's client and its commands, loaded where they are needed first. */
export interface OpenClient {
  readonly client: S3.S3Client;
  readonly s3: typeof S3;
}

/** Longest waits: for a connection, without a byte, and for the beginning of an answer. */
export interface StorePatience {
  readonly connectMs: number;
  readonly silentMs: number;
  readonly answerMs: number;
}

export const PATIENCE: StorePatience = { connectMs: 3_000, silentMs: 10_000, answerMs: 60_000 };
const TRIES_MAX = 3;
/** Streams that are read slowly keep theirs: a run with many sources must still be able to write. */
const SOCKETS_MAX = 1_000;

/** Credentials are the AWS SDK's own: variables, profile, role of the machine. */
export async function openClient(
  settings: S3Settings,
  endpoint: string | null,
  patience: StorePatience,
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
    // Ceph fails uploads in parts with the checksums that AWS knows.
    ...(settings.endpoint !== null && {
      requestChecksumCalculation: "WHEN_REQUIRED",
      responseChecksumValidation: "WHEN_REQUIRED",
    }),
  });
  return { client, s3 };
}
